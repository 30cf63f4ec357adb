import type { StoredConfiguration, StoredSection } from '../../domain/settings.ts'
import {
  channelFromRow,
  storedSettingFromRow,
  storedSettingText,
  channelVersion,
  unencryptedDefinition,
  sealChannelKeys,
} from '../channel-rows.ts'
import type { StoredPriceSet } from '../ledger-writes.ts'
import type { Secrets } from '../secrets.ts'
import { type ImportedBudgetUse, openBudgets } from './budgets.ts'
import { recordChannelRename, recordChannelName } from './channel-names.ts'
import type { Db } from './operation.ts'
import { requireVersion } from '../../domain/object-version.ts'
import type { Budget } from '../../domain/budget.ts'
import type { Json } from '../../domain/json.ts'
import { GatewayError } from '../../errors.ts'
import { CHANNEL, type ChannelDefinition, type StoredChannel } from '../../domain/records/channel.ts'

/** Reads all settings made over HTTP: channels from oldest to newest, other settings by section and name. */
export async function storedConfiguration(
  db: Db,
  _: unknown,
  secrets: Secrets,
): Promise<StoredConfiguration> {
  const channels = await db.selectFrom('channels').selectAll().orderBy('id').execute()
  const entries = await db.selectFrom('stored_settings').selectAll().execute()
  return {
    channels: channels.map((row) => channelFromRow(row, secrets)),
    entries: entries.map((row) => storedSettingFromRow(row, secrets)).toSorted(byName),
  }
}

// Sorted in the program, because databases differ in the order of texts.
function byName(
  a: { readonly section: string; readonly name: string },
  b: { readonly section: string; readonly name: string },
): number {
  if (a.section !== b.section) return a.section < b.section ? -1 : 1
  return a.name < b.name ? -1 : Number(a.name > b.name)
}

/** Stores the price of a model in a group for one version of the prices, unless it is stored already. */
export async function storePriceSet(
  db: Db,
  { version, model, group, content }: StoredPriceSet,
): Promise<void> {
  await db
    .insertInto('price_sets')
    .values({ version, model, group_name: group, content })
    .onConflict((on) => on.doNothing())
    .execute()
}

/** Change of a stored setting; without `value`, the setting is removed. */
export interface SettingRowChange {
  readonly section: StoredSection
  readonly name: string
  readonly value: Json | undefined
}

/** What an imported group spent elsewhere in the present period of its budget. */
export interface GroupSpending extends ImportedBudgetUse {
  readonly group: string
  readonly budget: Budget
  readonly nowSeconds: number
}

/**
 * Sets and removes stored settings, all or none. Rejects with `changed_meanwhile` unless all `expected`
 * settings have their expected values.
 */
export async function setStoredSettings(
  db: Db,
  {
    changes,
    expected = [],
    spent = [],
  }: {
    readonly changes: readonly SettingRowChange[]
    readonly expected?: readonly SettingRowChange[]
    readonly spent?: readonly GroupSpending[]
  },
  secrets: Secrets,
): Promise<void> {
  for (const { section, name, value } of expected) {
    const row = await db
      .selectFrom('stored_settings')
      .selectAll()
      .where('section', '=', section)
      .where('name', '=', name)
      .executeTakeFirst()
    // Encrypted values differ for the same content.
    const present = row && storedSettingFromRow(row, secrets).value
    requireVersion(textOf(value), textOf(present))
  }
  for (const { section, name, value } of changes) {
    if (value === undefined) {
      await db.deleteFrom('stored_settings').where('section', '=', section).where('name', '=', name).execute()
      continue
    }
    const text = storedSettingText({ section, name, value }, secrets)
    await db
      .insertInto('stored_settings')
      .values({ section, name, value: text })
      .onConflict((conflict) => conflict.columns(['section', 'name']).doUpdateSet({ value: text }))
      .execute()
    if (section === 'mcp_toolsets') await recordToolsets(db)
  }
  for (const { group, nowSeconds, ...use } of spent)
    await openBudgets(db, [{ ...use, owner: `g:${group}` }], nowSeconds)
}

function textOf(value: Json | undefined): string {
  return value === undefined ? '' : JSON.stringify(value)
}

/** Records that there has been a toolset, so that its removal does not give every key every tool. */
export async function recordToolsets(db: Db): Promise<void> {
  await db
    .insertInto('stored_settings')
    .values({ section: 'mcp_state', name: 'toolsets', value: 'true' })
    .onConflict((conflict) => conflict.columns(['section', 'name']).doNothing())
    .execute()
}

/** Approves definitions of tools that have none yet. */
export async function approveFirstTools(
  db: Db,
  { tools }: { readonly tools: readonly { readonly name: string; readonly value: Json }[] },
  secrets: Secrets,
): Promise<void> {
  for (const { name, value } of tools) {
    const text = storedSettingText({ section: 'mcp_tools', name, value }, secrets)
    await db
      .insertInto('stored_settings')
      .values({ section: 'mcp_tools', name, value: text })
      .onConflict((conflict) => conflict.columns(['section', 'name']).doNothing())
      .execute()
  }
}

/** Approves the definition of a tool in place of an earlier one. */
export async function approveTool(
  db: Db,
  { name, value }: { readonly name: string; readonly value: Json },
  secrets: Secrets,
): Promise<void> {
  await setStoredSettings(db, { changes: [{ section: 'mcp_tools', name, value }] }, secrets)
}

/**
 * Creates channels with encrypted keys. Resolves to their ids. Rejects if a stored channel has one of the
 * names.
 */
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
    await recordChannelName(db, channel.name)
    const { id } = await db
      .insertInto('channels')
      .values({
        ...CHANNEL.newRow({ ...unencryptedDefinition(channel), created_time }),
        // The keys are encrypted after the insert, because the encryption needs the id of the row.
        keys_cipher: '',
      })
      .returning('id')
      .executeTakeFirstOrThrow()
    await db
      .updateTable('channels')
      .set({ keys_cipher: sealChannelKeys(secrets, channel, id) })
      .where('id', '=', id)
      .execute()
    ids.push(id)
  }
  return ids
}

/** Replaces a channel. Resolves to its new version; null if there is no channel with this id. */
export async function changeChannel(
  db: Db,
  {
    id,
    channel,
    version,
  }: {
    readonly id: number
    readonly channel: ChannelDefinition
    /** If given, the change is refused with `changed_meanwhile` unless this is the channel's version. */
    readonly version?: string | undefined
  },
  secrets: Secrets,
): Promise<string | null> {
  const before = await db.selectFrom('channels').selectAll().where('id', '=', id).executeTakeFirst()
  if (!before) return null
  requireVersion(version, channelFromRow(before, secrets).version)
  await refuseTaken(db, channel.name, id)
  if (before.name !== channel.name) await recordChannelRename(db, before.name, channel.name)
  await db
    .updateTable('channels')
    .set({
      ...CHANNEL.toRow(unencryptedDefinition(channel)),
      keys_cipher: sealChannelKeys(secrets, channel, id),
    })
    .where('id', '=', id)
    .execute()
  return channelVersion(channel, secrets)
}

/** Removes channels; resolves to the number removed. */
export async function deleteChannels(db: Db, { ids }: { readonly ids: readonly number[] }): Promise<number> {
  if (ids.length === 0) return 0
  await db
    .deleteFrom('stored_settings')
    .where('section', '=', DRAINS)
    .where('name', 'in', ids.map(String))
    .execute()
  const { numDeletedRows } = await db.deleteFrom('channels').where('id', 'in', ids).executeTakeFirst()
  return Number(numDeletedRows)
}

/** Stores whether a channel is drained, so that it gets no new calls. */
export async function drainChannel(
  db: Db,
  { id, on }: { readonly id: number; readonly name: string; readonly on: boolean },
): Promise<void> {
  const name = String(id)
  if (on)
    await db
      .insertInto('stored_settings')
      .values({ section: DRAINS, name, value: 'true' })
      .onConflict((conflict) => conflict.columns(['section', 'name']).doNothing())
      .execute()
  else await db.deleteFrom('stored_settings').where('section', '=', DRAINS).where('name', '=', name).execute()
}

const DRAINS: StoredSection = 'drains'

/** Stores when a channel was tested, and how long the test took. */
export async function recordChannelTest(
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
