import { GatewayError } from '../../errors.ts'
import { requireVersion } from '../../domain/object-version.ts'
import { CHANNEL, type ChannelDefinition, type StoredChannel } from '../../domain/records/channel.ts'
import { channelFromRow, channelVersion, openDefinition, sealedKeys } from '../channel-rows.ts'
import type { Secrets } from '../secrets.ts'
import type { Db } from './operation.ts'

/** Creates channels with encrypted keys; resolves to their ids. Refuses names of stored channels. */
export async function createChannels(
  db: Db,
  {
    channels,
    created_time,
  }: { readonly channels: readonly ChannelDefinition[]; readonly created_time: number },
  secrets: Secrets,
): Promise<number[]> {
  const ids: number[] = []
  for (const channel of channels) {
    await refuseTaken(db, channel.name)
    const { id } = await db
      .insertInto('channels')
      .values({
        ...CHANNEL.newRow({ ...openDefinition(channel), created_time }),
        // Encrypted below, because the encryption is bound to the id of the row.
        keys_cipher: '',
      })
      .returning('id')
      .executeTakeFirstOrThrow()
    await db
      .updateTable('channels')
      .set({ keys_cipher: sealedKeys(secrets, channel, id) })
      .where('id', '=', id)
      .execute()
    ids.push(id)
  }
  return ids
}

/** Replaces a channel; resolves to its new version, or null if there is none with this id. */
export async function changeChannel(
  db: Db,
  {
    id,
    channel,
    version,
  }: {
    readonly id: number
    readonly channel: ChannelDefinition
    /** Refuses with `changed_meanwhile` unless this is the channel's version; undefined allows any. */
    readonly version?: string | undefined
  },
  secrets: Secrets,
): Promise<string | null> {
  const before = await db.selectFrom('channels').selectAll().where('id', '=', id).executeTakeFirst()
  if (!before) return null
  requireVersion(version, channelFromRow(before, secrets).version)
  await refuseTaken(db, channel.name, id)
  await db
    .updateTable('channels')
    .set({ ...CHANNEL.toRow(openDefinition(channel)), keys_cipher: sealedKeys(secrets, channel, id) })
    .where('id', '=', id)
    .execute()
  return channelVersion(channel, secrets)
}

/** Removes channels; resolves to the number removed. */
export async function deleteChannels(db: Db, { ids }: { readonly ids: readonly number[] }): Promise<number> {
  if (ids.length === 0) return 0
  const { numDeletedRows } = await db.deleteFrom('channels').where('id', 'in', ids).executeTakeFirst()
  return Number(numDeletedRows)
}

/** Stores the time of a channel test and its duration. */
export async function noteChannelTest(
  db: Db,
  { id, ...test }: Pick<StoredChannel, 'id' | 'test_time' | 'response_ms'>,
): Promise<void> {
  await db.updateTable('channels').set(CHANNEL.toRow(test)).where('id', '=', id).execute()
}

async function refuseTaken(db: Db, name: string, exceptId = 0): Promise<void> {
  const holder = await db
    .selectFrom('channels')
    .select('id')
    .where('name', '=', name)
    .where('id', '!=', exceptId)
    .executeTakeFirst()
  if (!holder) return
  throw new GatewayError('invalid_request', `name: there is a channel "${name}" already`)
}
