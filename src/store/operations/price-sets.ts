import type { StoredPriceSet } from '../ledger-writes.ts'
import type { Db } from './operation.ts'

/** Stores what a model costs in a group in one version of the prices, once. */
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
