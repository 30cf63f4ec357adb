import { declaredId } from '../../domain/channel-id.ts'
import type { FilterValues, UsageFilter } from '../../domain/usage-filter.ts'
import { filterValueList } from '../../domain/usage-filter.ts'
import { smallestSumKind } from '../sum-kinds.ts'
import { type Db, inChunks } from './operation.ts'

/**
 * Present name of a channel by each of its former names. The usage log has the name that a channel had at the
 * time of a call, so this joins the calls of a renamed channel. If another channel takes a former name, the
 * name belongs to that channel.
 */
type PresentNames = ReadonlyMap<string, string>

/**
 * Reads the former names of channels. For each, returns the channel's present name, or its last name if it
 * was deleted.
 */
export async function presentChannelNames(db: Db): Promise<PresentNames> {
  const rows = await db.selectFrom('former_channel_names').selectAll().execute()
  return new Map(rows.map(({ name, present }) => [name, present]))
}

export async function recordChannelRename(db: Db, before: string, after: string): Promise<void> {
  await recordChannelName(db, after)
  await db.updateTable('former_channel_names').set({ present: after }).where('present', '=', before).execute()
  await db.insertInto('former_channel_names').values({ name: before, present: after }).execute()
}

/** Records that a channel now has this name. The name is then no longer a former name of another channel. */
export async function recordChannelName(db: Db, name: string): Promise<void> {
  await db.deleteFrom('former_channel_names').where('name', '=', name).execute()
}

/**
 * Returns the ids of channels by name. Channels in the configuration file and deleted channels have a hash of
 * the name as id.
 */
export async function channelIds(
  db: Db,
  { names }: { readonly names: readonly string[] },
): Promise<ReadonlyMap<string, number>> {
  const rows = await inChunks(names, (some) =>
    db.selectFrom('channels').select(['id', 'name']).where('name', 'in', some).execute(),
  )
  const stored = new Map(rows.map(({ id, name }) => [name, id]))
  return new Map(names.map((name) => [name, stored.get(name) ?? declaredId(name)]))
}

/** Returns the present names of the channels with these ids. Finds channels that are stored or have calls. */
export async function namesOfChannels(
  db: Db,
  { ids }: { readonly ids: readonly number[] },
): Promise<readonly string[]> {
  const { kind } = smallestSumKind('day', ['channel'])
  const called = await db
    .selectFrom('usage_sums')
    .select('channel')
    .distinct()
    .where('kind', '=', kind)
    .execute()
  const stored = await db.selectFrom('channels').select('name').where('id', 'in', ids).execute()
  const present = await presentChannelNames(db)
  const names = [
    ...called.map(({ channel }) => present.get(channel) ?? channel),
    ...stored.map(({ name }) => name),
  ]
  const idOf = await channelIds(db, { names: [...new Set(names)] })
  return [...idOf].flatMap(([name, id]) => (ids.includes(id) ? [name] : []))
}

/** Returns all names under which calls of these channels may have been logged. */
export function loggedChannelNames(names: readonly string[], present: PresentNames): string[] {
  const former = [...present].flatMap(([name, now]) => (names.includes(now) ? [name] : []))
  // `names` may itself contain former names, so they are kept.
  return [...new Set([...names, ...former])]
}

/**
 * Replaces the channels of a filter by the names under which their calls are logged; null if there are none.
 */
export async function withLoggedChannelNames<Filter extends Pick<UsageFilter, 'channel' | 'channel_id'>>(
  db: Db,
  filter: Filter,
): Promise<(Filter & { readonly channel?: FilterValues<string> | undefined }) | null> {
  const { channel, channel_id: ids } = filter
  if (channel === undefined && ids === undefined) return filter
  const named = channel === undefined ? undefined : filterValueList(channel)
  const ofIds = ids === undefined ? undefined : await namesOfChannels(db, { ids: filterValueList(ids) })
  const wanted = named && ofIds ? named.filter((name) => ofIds.includes(name)) : (named ?? ofIds ?? [])
  if (wanted.length === 0) return null
  return {
    ...filter,
    channel_id: undefined,
    channel: loggedChannelNames(wanted, await presentChannelNames(db)),
  }
}
