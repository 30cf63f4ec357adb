import type { Token } from '../../domain/records/token.ts'
import { hashKey, type Secrets, seal } from '../secrets.ts'
import { tokenFromRow } from '../token-rows.ts'
import type { Db } from './operation.ts'

/** Replaces the key of a live token; null if the user has no such token. All else about it stays. */
export async function rotateToken(
  db: Db,
  change: {
    readonly tokenId: number
    readonly userId: number
    /** Plain new key without `sk-`. */
    readonly key: string
  },
  secrets: Secrets,
): Promise<Token | null> {
  const row = await db
    .updateTable('tokens')
    .set({
      key_hash: hashKey(secrets, change.key),
      key_cipher: seal(secrets, change.key, { table: 'tokens', row: change.tokenId }),
    })
    .where('id', '=', change.tokenId)
    .where('user_id', '=', change.userId)
    .where('deleted_time', 'is', null)
    .returningAll()
    .executeTakeFirst()
  return row ? tokenFromRow(row) : null
}
