import type { StoredConfiguration } from '../../domain/settings.ts'
import { channelFromRow, entryFromRow } from '../channel-rows.ts'
import type { StoredPriceSet } from '../ledger-writes.ts'
import type { Secrets } from '../secrets.ts'
import type { Db } from './operation.ts'

/** Reads all settings made over HTTP: channels oldest first, entries by section and name. */
export async function storedConfiguration(
  db: Db,
  _: unknown,
  secrets: Secrets,
): Promise<StoredConfiguration> {
  const channels = await db.selectFrom('channels').selectAll().orderBy('id').execute()
  const entries = await db.selectFrom('stored_settings').selectAll().execute()
  return {
    channels: channels.map((row) => channelFromRow(row, secrets)),
    entries: entries.map(entryFromRow).toSorted(byName),
  }
}

// Sorts here, because databases differ in the order of texts.
function byName(
  a: { readonly section: string; readonly name: string },
  b: { readonly section: string; readonly name: string },
): number {
  if (a.section !== b.section) return a.section < b.section ? -1 : 1
  return a.name < b.name ? -1 : Number(a.name > b.name)
}

/** Stores the price of a model in a group in one version of the prices, once. */
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
