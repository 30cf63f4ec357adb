import { TOKEN_STATUS, type Token, type TokenStatus } from '../../domain/token.ts'
import { tokenFromRow } from '../token-rows.ts'
import type { Db } from './operation.ts'

/** Writes the status alone, and only if it is `onlyFrom` now; says whether it did. Deleted tokens stay as they are. */
export async function setTokenStatus(
  db: Db,
  change: { readonly tokenId: number; readonly status: TokenStatus; readonly onlyFrom: TokenStatus },
): Promise<boolean> {
  const result = await db
    .updateTable('tokens')
    .set({ status: change.status })
    .where('id', '=', change.tokenId)
    .where('status', '=', change.onlyFrom)
    .where('deleted_time', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/** Disables a live token, whatever its status. Null if there is none of that id, or no longer. */
export async function disableToken(db: Db, { tokenId }: { readonly tokenId: number }): Promise<Token | null> {
  const row = await db
    .updateTable('tokens')
    .set({ status: TOKEN_STATUS.disabled })
    .where('id', '=', tokenId)
    .where('deleted_time', 'is', null)
    .returningAll()
    .executeTakeFirst()
  return row ? tokenFromRow(row) : null
}
