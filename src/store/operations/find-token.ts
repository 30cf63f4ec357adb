import type { Token, TokenRow } from '../../domain/records/token.ts'
import type { User } from '../../domain/records/user.ts'
import type { StoredAccount } from '../ledger-writes.ts'
import { tokenFromRow } from '../token-rows.ts'
import { userFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'

/** Finds a token and its user by key, deleted ones included, so that errors can tell what became of it. */
export async function tokenByKeyHash(
  db: Db,
  keyHash: string,
): Promise<{ readonly token: Token; readonly user: User } | null> {
  const token = await db.selectFrom('tokens').selectAll().where('key_hash', '=', keyHash).executeTakeFirst()
  return token ? withUser(db, token) : null
}

/** Reads a token and its user, deleted or not, without open holds (0), which are not in this database. */
export async function accountOfToken(
  db: Db,
  { tokenId }: { readonly tokenId: number },
): Promise<StoredAccount | null> {
  const token = await db.selectFrom('tokens').selectAll().where('id', '=', tokenId).executeTakeFirst()
  return token ? { ...(await withUser(db, token)), openHolds: { token: 0, user: 0 } } : null
}

async function withUser(db: Db, row: TokenRow): Promise<{ readonly token: Token; readonly user: User }> {
  const user = await db
    .selectFrom('users')
    .selectAll()
    .where('id', '=', row.user_id)
    .executeTakeFirstOrThrow()
  return { token: tokenFromRow(row), user: userFromRow(user) }
}

/** Finds the live token with this id; null if there is none. */
export async function tokenById(db: Db, { tokenId }: { readonly tokenId: number }): Promise<Token | null> {
  const row = await db
    .selectFrom('tokens')
    .selectAll()
    .where('id', '=', tokenId)
    .where('deleted_time', 'is', null)
    .executeTakeFirst()
  return row ? tokenFromRow(row) : null
}
