import { countKept, RESPONSE_BYTES, SIGNATURE_BYTES } from './kept-sums.ts'
import type { Db } from './operation.ts'

/** Result of a drop. */
export interface DroppedRows {
  /** Responses whose parts can be removed. */
  readonly responseIds: readonly string[]
  /** True if more than the maximum is still kept. */
  readonly more: boolean
}

/**
 * Removes the oldest data kept for a user, at most `limit` rows, until its size is at most `mostBytes`.
 * Responses and signatures are ordered together by age.
 */
export async function dropOldestKept(
  db: Db,
  {
    userId,
    mostBytes,
    limit,
  }: { readonly userId: number; readonly mostBytes: number; readonly limit: number },
): Promise<DroppedRows> {
  const sum = await db
    .selectFrom('kept_sums')
    .select('bytes')
    .where('user_id', '=', userId)
    .executeTakeFirst()
  let excess = (sum?.bytes ?? 0) - mostBytes
  if (excess <= 0) return { responseIds: [], more: false }
  const oldest = await oldestRows(db, userId, limit)
  const dropped = []
  for (const row of oldest) {
    if (excess <= 0) break
    dropped.push(row)
    excess -= row.bytes ?? 0
  }
  const responseIds = dropped.flatMap(({ id }) => id ?? [])
  const hashes = dropped.flatMap(({ hash }) => hash ?? [])
  if (responseIds.length > 0) await db.deleteFrom('stored_responses').where('id', 'in', responseIds).execute()
  if (hashes.length > 0)
    await db.deleteFrom('kept_signatures').where('user_id', '=', userId).where('hash', 'in', hashes).execute()
  await countKept(db, { removed: dropped })
  return { responseIds, more: excess > 0 && dropped.length > 0 }
}

/** The oldest rows of both kinds, in the order of their age. */
async function oldestRows(db: Db, userId: number, limit: number) {
  const responses = await db
    .selectFrom('stored_responses')
    .select(['id', 'user_id', 'created_ms as keptMs', RESPONSE_BYTES.as('bytes')])
    .where('user_id', '=', userId)
    .where('content_cipher', 'is not', null)
    .orderBy('created_ms')
    .limit(limit)
    .execute()
  const signatures = await db
    .selectFrom('kept_signatures')
    .select(['hash', 'user_id', 'kept_ms as keptMs', SIGNATURE_BYTES.as('bytes')])
    .where('user_id', '=', userId)
    .orderBy('kept_ms')
    .limit(limit)
    .execute()
  const rows: readonly {
    readonly id?: string
    readonly hash?: string
    readonly user_id: number
    readonly keptMs: number
    readonly bytes: number | null
  }[] = [...responses, ...signatures]
  return rows.toSorted((a, b) => a.keptMs - b.keptMs).slice(0, limit)
}
