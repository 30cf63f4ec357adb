import type { Token, TokenRow } from '../../domain/records/token.ts'
import type { User } from '../../domain/records/user.ts'
import type { StoredAccount } from '../ledger-writes.ts'
import { liveTokens, ownTokens } from '../live-rows.ts'
import { type Secrets, unseal } from '../secrets.ts'
import { tokenFromRow } from '../token-rows.ts'
import { userFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'

/**
 * Finds a token and its user by key, including deleted ones, so that errors can state what happened to it.
 */
export async function tokenByKeyHash(
  db: Db,
  keyHash: string,
): Promise<{ readonly token: Token; readonly user: User } | null> {
  const token = await db.selectFrom('tokens').selectAll().where('key_hash', '=', keyHash).executeTakeFirst()
  return token ? withUser(db, token) : null
}

/** Reads a token and its user, deleted or not. Open holds are 0, because they are not in this database. */
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
  const row = await liveTokens(db).selectAll().where('id', '=', tokenId).executeTakeFirst()
  return row ? tokenFromRow(row) : null
}

/** Names of a token and of its user. */
interface TokenNames {
  readonly token_id: number
  readonly token_name: string
  readonly username: string
}

/** Reads the names of tokens, deleted ones too, and of their users; unknown ids are left out. */
export function tokenNames(
  db: Db,
  { tokenIds }: { readonly tokenIds: readonly number[] },
): Promise<TokenNames[]> {
  return db
    .selectFrom('tokens')
    .innerJoin('users', 'users.id', 'tokens.user_id')
    .where('tokens.id', 'in', tokenIds)
    .select(['tokens.id as token_id', 'tokens.name as token_name', 'users.username'])
    .execute()
}

/** Decrypts the key of a live token, without `sk-`; null if the user has no such token. */
export async function revealKey(
  db: Db,
  { tokenId, userId }: { readonly tokenId: number; readonly userId: number },
  secrets: Secrets,
): Promise<string | null> {
  const [found] = await revealKeys(db, { tokenIds: [tokenId], userId }, secrets)
  return found?.key ?? null
}

/** Decrypts the keys of the user's live tokens among `tokenIds`, without `sk-`, oldest token first. */
export async function revealKeys(
  db: Db,
  { tokenIds, userId }: { readonly tokenIds: readonly number[]; readonly userId: number },
  secrets: Secrets,
): Promise<{ readonly tokenId: number; readonly key: string }[]> {
  const rows = await ownTokens(db, userId)
    .select(['id', 'key_cipher'])
    .where('id', 'in', tokenIds)
    .orderBy('id')
    .execute()
  return rows.map(({ id, key_cipher }) => ({
    tokenId: id,
    key: unseal(secrets, key_cipher, { table: 'tokens', row: id }),
  }))
}
