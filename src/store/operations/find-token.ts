import type { Token } from '../../domain/token.ts'
import type { User } from '../../domain/user.ts'
import type { StoredAccount } from '../ledger-writes.ts'
import { tokenFromRow } from '../token-rows.ts'
import { userFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'

/** Whose key that is; deleted tokens are found too, so that the caller can say what became of the key. */
export async function tokenByKeyHash(
  db: Db,
  keyHash: string,
): Promise<{ readonly token: Token; readonly user: User } | null> {
  const token = await db.selectFrom('tokens').selectAll().where('key_hash', '=', keyHash).executeTakeFirst()
  if (!token) return null
  const user = await db
    .selectFrom('users')
    .selectAll()
    .where('id', '=', token.user_id)
    .executeTakeFirstOrThrow()
  return { token: tokenFromRow(token), user: userFromRow(user) }
}

/** A token and its user as they stand, deleted or not; what holds are open is not known here. */
export async function accountOfToken(
  db: Db,
  { tokenId }: { readonly tokenId: number },
): Promise<StoredAccount | null> {
  const token = await db.selectFrom('tokens').selectAll().where('id', '=', tokenId).executeTakeFirst()
  if (!token) return null
  const user = await db
    .selectFrom('users')
    .selectAll()
    .where('id', '=', token.user_id)
    .executeTakeFirstOrThrow()
  return { token: tokenFromRow(token), user: userFromRow(user), openHolds: { token: 0, user: 0 } }
}

/** The live token of that id; null if there is none, or no longer. */
export async function tokenById(db: Db, { tokenId }: { readonly tokenId: number }): Promise<Token | null> {
  const row = await db
    .selectFrom('tokens')
    .selectAll()
    .where('id', '=', tokenId)
    .where('deleted_time', 'is', null)
    .executeTakeFirst()
  return row ? tokenFromRow(row) : null
}
