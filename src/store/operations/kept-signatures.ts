import type { KeptSignature } from '../../domain/stored-response.ts'
import { type Secrets, seal, unseal } from '../secrets.ts'
import { countKept, type KeptSum, SIGNATURE_BYTES, signatureBytes } from './kept-sums.ts'
import type { Db } from './operation.ts'

/** Name of the table in the context of its encrypted values. */
const TABLE = 'kept_signatures'
/** Rows of one statement, and hashes of one query: databases bound the parameters. */
const MAX_ROWS = 1_000

/** Signatures of one user's reply. */
export interface UserSignatures {
  readonly userId: number
  readonly signatures: readonly KeptSignature[]
  /** Time of the reply. */
  readonly keptMs: number
  readonly expiresMs: number
}

/**
 * Stores signatures, each encrypted for its row, replacing those with the same hash. Resolves to the total
 * sizes of what is kept for their users.
 */
export async function keepSignatures(
  db: Db,
  { replies }: { readonly replies: readonly UserSignatures[] },
  secrets: Secrets,
): Promise<KeptSum[]> {
  const rows = new Map(
    replies.flatMap(({ userId, signatures, keptMs, expiresMs }) =>
      signatures.map(({ hash, content }) => {
        const row = {
          user_id: userId,
          hash,
          content_cipher: seal(secrets, content, { table: TABLE, row: hash }),
          kept_ms: keptMs,
          expires_ms: expiresMs,
        }
        return [`${userId} ${hash}`, row] as const
      }),
    ),
  )
  const all = [...rows.values()]
  const removed = await presentRows(db, all)
  for (let at = 0; at < all.length; at += MAX_ROWS)
    await db
      .insertInto('kept_signatures')
      .values(all.slice(at, at + MAX_ROWS))
      .onConflict((conflict) =>
        conflict.columns(['user_id', 'hash']).doUpdateSet((excluded) => ({
          content_cipher: excluded.ref('excluded.content_cipher'),
          kept_ms: excluded.ref('excluded.kept_ms'),
          expires_ms: excluded.ref('excluded.expires_ms'),
        })),
      )
      .execute()
  const written = all.map((row) => ({ user_id: row.user_id, bytes: signatureBytes(row.content_cipher) }))
  return countKept(db, { written, removed })
}

/** Finds the rows that are about to be replaced. */
async function presentRows(
  db: Db,
  rows: readonly { readonly user_id: number; readonly hash: string }[],
): Promise<{ user_id: number; bytes: number }[]> {
  const present: { user_id: number; bytes: number }[] = []
  for (const [userId, ofUser] of Map.groupBy(rows, ({ user_id: userId }) => userId))
    for (let at = 0; at < ofUser.length; at += MAX_ROWS)
      present.push(
        ...(await db
          .selectFrom('kept_signatures')
          .select(['user_id', SIGNATURE_BYTES.as('bytes')])
          .where('user_id', '=', userId)
          .where(
            'hash',
            'in',
            ofUser.slice(at, at + MAX_ROWS).map(({ hash }) => hash),
          )
          .execute()),
      )
  return present
}

/**
 * Finds signatures of a user by their hashes, in any order. Rows that were changed, moved or encrypted with
 * another secret are left out.
 */
export async function keptSignatures(
  db: Db,
  {
    userId,
    hashes,
    nowMs,
  }: { readonly userId: number; readonly hashes: readonly string[]; readonly nowMs: number },
  secrets: Secrets,
): Promise<(KeptSignature & { readonly expiresMs: number })[]> {
  const found: (KeptSignature & { readonly expiresMs: number })[] = []
  for (let at = 0; at < hashes.length; at += MAX_ROWS) {
    const rows = await db
      .selectFrom('kept_signatures')
      .select(['hash', 'content_cipher', 'expires_ms'])
      .where('user_id', '=', userId)
      .where('hash', 'in', hashes.slice(at, at + MAX_ROWS))
      .where('expires_ms', '>', nowMs)
      .execute()
    for (const { hash, content_cipher: cipher, expires_ms: expiresMs } of rows) {
      const content = contentOf(cipher, hash, secrets)
      if (content !== undefined) found.push({ hash, content, expiresMs })
    }
  }
  return found
}

/** Removes at most `limit` expired signatures; resolves to their number. */
export async function pruneSignatures(
  db: Db,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
): Promise<number> {
  const removed = await db
    .deleteFrom('kept_signatures')
    .where((eb) =>
      eb(
        eb.refTuple('user_id', 'hash'),
        'in',
        eb
          .selectFrom('kept_signatures')
          .select(['user_id', 'hash'])
          .where('expires_ms', '<=', nowMs)
          .limit(limit)
          .$asTuple('user_id', 'hash'),
      ),
    )
    .returning(['user_id', SIGNATURE_BYTES.as('bytes')])
    .execute()
  await countKept(db, { removed })
  return removed.length
}

function contentOf(cipher: string, hash: string, secrets: Secrets): string | undefined {
  try {
    return unseal(secrets, cipher, { table: TABLE, row: hash })
  } catch {
    return undefined
  }
}
