import { sql } from 'kysely'
import type { Db } from './operation.ts'

/** Bytes of a row in addition to its content: ids, other columns and indexes. */
const ROW_BYTES = 512

/** Number of bytes that count for a row of a response; null without content, as for native responses. */
export const RESPONSE_BYTES = sql<number | null>`kept_bytes + ${sql.lit(ROW_BYTES)}`

/** Number of bytes that count for a row of a signature. */
export const SIGNATURE_BYTES = sql<number>`octet_length(content_cipher) + ${sql.lit(ROW_BYTES)}`

/** The bytes that count for a signature about to be written; its encrypted content is ASCII. */
export function signatureBytes(cipher: string): number {
  return cipher.length + ROW_BYTES
}

/** Bytes that are kept for a user. */
export interface KeptSum {
  readonly userId: number
  readonly bytes: number
}

/** Row that was written or removed, and the bytes that count for it; null if none do. */
interface CountedRow {
  readonly user_id: number
  readonly bytes: number | null
}

/**
 * Updates the total sizes of what is kept for users after rows were written or removed, in the same
 * transaction. Resolves to the new totals.
 */
export async function countKept(
  db: Db,
  {
    written = [],
    removed = [],
  }: { readonly written?: readonly CountedRow[]; readonly removed?: readonly CountedRow[] },
): Promise<KeptSum[]> {
  const changes = new Map<number, number>()
  const add = (userId: number, bytes: number): void =>
    void changes.set(userId, (changes.get(userId) ?? 0) + bytes)
  for (const { user_id: userId, bytes } of written) if (bytes !== null) add(userId, bytes)
  for (const { user_id: userId, bytes } of removed) if (bytes !== null) add(userId, -bytes)
  const sums: KeptSum[] = []
  // In the order of ids, so that transactions cannot deadlock.
  for (const [userId, change] of [...changes].toSorted(([a], [b]) => a - b)) {
    const { bytes } = await db
      .insertInto('kept_sums')
      .values({ user_id: userId, bytes: change })
      .onConflict((on) => on.column('user_id').doUpdateSet({ bytes: sql`kept_sums.bytes + excluded.bytes` }))
      .returning('bytes')
      .executeTakeFirstOrThrow()
    sums.push({ userId, bytes })
  }
  return sums
}
