import { sql } from 'kysely'
import { firstCallIdAt, timeOfBatchId } from '../usage-id.ts'
import type { Db } from './operation.ts'

/** What the calls for the lines of a batch cost, in quota units. */
export interface BatchSum {
  readonly batch: string
  readonly quota: number
  /** How much more they would have cost at the standard tier. */
  readonly saved: number
}

/** Sums up the calls for the lines of batches. A batch without calls has no sum. */
export async function batchSums(db: Db, { ids }: { readonly ids: readonly string[] }): Promise<BatchSum[]> {
  const sums: BatchSum[] = []
  for (const batch of ids) {
    const timeMs = timeOfBatchId(batch)
    if (!Number.isSafeInteger(timeMs)) continue
    // The calls of a batch have its time in their ids.
    const sum = await db
      .selectFrom('usage_log')
      .where('id', '>=', firstCallIdAt(timeMs))
      .where('id', '<', firstCallIdAt(timeMs + 1))
      .where('batch', '=', batch)
      .select([
        sql<number>`count(*)`.as('calls'),
        sql<number>`cast(coalesce(sum(quota), 0) as bigint)`.as('quota'),
        sql<number>`cast(coalesce(sum(batch_saved), 0) as bigint)`.as('saved'),
      ])
      .executeTakeFirstOrThrow()
    if (sum.calls > 0) sums.push({ batch, quota: sum.quota, saved: sum.saved })
  }
  return sums
}
