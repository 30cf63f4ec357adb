import { importedKeyHash } from '../../domain/api-key.ts'
import { budgetFromColumns } from '../../domain/budget.ts'
import { sql } from 'kysely'
import type { ManagedUser, User, USER_ORDERS, UserRow } from '../../domain/records/user.ts'
import {
  undeletedUsers,
  undeletedTokens,
  undeletedTokensOfUser,
  managedUserFromRow,
  userFromRow,
  tokenFromRow,
} from '../account-rows.ts'
import { lastActive } from './last-active.ts'
import { type Db, inChunks } from './operation.ts'
import type { Token, TOKEN_ORDERS, TokenRow } from '../../domain/records/token.ts'
import type { StoredAccount } from '../ledger-writes.ts'
import { type Secrets, unseal } from '../secrets.ts'

/** Finds the user with this name; null if there is none. */
export async function userByName(db: Db, username: string): Promise<User | null> {
  const row = await undeletedUsers(db).selectAll().where('username', '=', username).executeTakeFirst()
  return row ? userFromRow(row) : null
}

/** Finds the user with this id; null if there is none. */
export async function userById(db: Db, userId: number): Promise<User | null> {
  const row = await undeletedUser(db, userId)
  return row ? userFromRow(row) : null
}

/** Finds the users with these ids. Unknown ids are left out. */
export async function usersById(
  db: Db,
  { userIds }: { readonly userIds: readonly number[] },
): Promise<User[]> {
  const rows = await undeletedUsers(db).selectAll().where('id', 'in', userIds).execute()
  return rows.map(userFromRow)
}

/** Finds a user by the HMAC of an access token; null if there is none. */
export async function userByAccessToken(db: Db, accessTokenHash: string): Promise<User | null> {
  const row = await undeletedUsers(db)
    .selectAll()
    .where('access_token_hash', '=', accessTokenHash)
    .executeTakeFirst()
  return row ? userFromRow(row) : null
}

/** Lists users that are not deleted, oldest first. */
export async function listUsers(db: Db): Promise<User[]> {
  const rows = await undeletedUsers(db).selectAll().orderBy('id').execute()
  return rows.map(userFromRow)
}

/** Counts users, including deleted ones; 0 means that the database is new. */
export async function countUsers(db: Db): Promise<number> {
  const { count } = await db
    .selectFrom('users')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return count
}

/** A user and the hash of the password; null if no password was ever set. Must not be logged or sent. */
interface Credentials {
  readonly user: ManagedUser
  readonly passwordHash: string | null
}

/** Reads the credentials of the user with this name; null if there is none. */
export async function credentials(
  db: Db,
  { username }: { readonly username: string },
): Promise<Credentials | null> {
  const row = await undeletedUsers(db).selectAll().where('username', '=', username).executeTakeFirst()
  return row ? { user: managedUserFromRow(row), passwordHash: row.password_hash } : null
}

/** Whether any user has an imported bcrypt hash. */
export async function hasBcryptPasswords(db: Db): Promise<boolean> {
  const row = await undeletedUsers(db)
    .select('id')
    .where('password_hash', 'like', '$2%')
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

interface UserSearch {
  /**
   * Part of the username, display name or e-mail address, in upper or lower case; or the complete id. An
   * empty keyword matches all users.
   */
  readonly keyword: string
  /** Only users of this group; undefined for all groups. */
  readonly group: string | undefined
  readonly offset: number
  readonly limit: number
  /** Order of the result; newest users first if not given. */
  readonly order?: UserOrder | undefined
}

/** An order of users. Users with equal values are ordered by id. */
export interface UserOrder {
  readonly by: (typeof USER_ORDERS)[number]
  readonly isAscending: boolean
}

/** Reads a page of the matching users that are not deleted, and their total number. */
export async function pageOfUsers(
  db: Db,
  search: UserSearch,
): Promise<{ readonly users: readonly ManagedUser[]; readonly total: number }> {
  const ids = await matchingIds(db, search)
  const shown = ids.slice(search.offset, search.offset + search.limit)
  if (shown.length === 0) return { users: [], total: ids.length }
  const rows = await db.selectFrom('users').selectAll().where('id', 'in', shown).execute()
  const byId = new Map(rows.map((row) => [row.id, row]))
  const users = shown.flatMap((id) => byId.get(id) ?? [])
  return { users: users.map(managedUserFromRow), total: ids.length }
}

// Compared in the program, because databases differ in case conversion beyond ASCII.
async function matchingIds(db: Db, { keyword, group, order }: UserSearch): Promise<number[]> {
  const { by, isAscending } = order ?? { by: undefined, isAscending: false }
  let query = undeletedUsers(db).select(['id', 'username', 'display_name', 'email'])
  if (by !== undefined && by !== 'last_active')
    query = query.orderBy(by === 'group' ? 'group_name' : by, isAscending ? 'asc' : 'desc')
  query = query.orderBy('id', isAscending ? 'asc' : 'desc')
  if (group !== undefined) query = query.where('group_name', '=', group)
  const sought = keyword.toLowerCase()
  const ids = (await query.execute())
    .filter(
      (row) =>
        String(row.id) === keyword ||
        [row.username, row.display_name, row.email].some((text) => text.toLowerCase().includes(sought)),
    )
    .map(({ id }) => id)
  return by === 'last_active' ? byActivity(db, ids, isAscending) : ids
}

// The sort is stable, so users with equal times remain in the order of their ids.
async function byActivity(db: Db, ids: readonly number[], isAscending: boolean): Promise<number[]> {
  const times = await inChunks(ids, (userIds) => lastActive(db, { userIds }))
  const latest = new Map<number, number>()
  for (const { userId, at } of times) latest.set(userId, Math.max(at, latest.get(userId) ?? 0))
  const minuteOf = (id: number): number => Math.floor((latest.get(id) ?? 0) / 60)
  const sign = isAscending ? 1 : -1
  return ids.toSorted((one, other) => sign * (minuteOf(one) - minuteOf(other)))
}

/** Reads everything that administrators can change about a user; null if there is no user with this id. */
export async function managedUser(
  db: Db,
  { userId }: { readonly userId: number },
): Promise<ManagedUser | null> {
  const row = await undeletedUser(db, userId)
  return row ? managedUserFromRow(row) : null
}

/** Reads the row of a user that is not deleted. */
export function undeletedUser(db: Db, userId: number): Promise<UserRow | undefined> {
  return undeletedUsers(db).selectAll().where('id', '=', userId).executeTakeFirst()
}

/**
 * Finds a token and its user by the hash of the key. Includes deleted ones, so that error messages can say
 * what happened to the key.
 */
export async function tokenByKeyHash(
  db: Db,
  keyHash: string,
): Promise<{ readonly token: Token; readonly user: User } | null> {
  const token = await db.selectFrom('tokens').selectAll().where('key_hash', '=', keyHash).executeTakeFirst()
  return token ? withUser(db, token) : null
}

/**
 * Reads a token and its user, deleted or not. Returns 0 for the open holds, because they are not in this
 * database.
 */
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

/** Finds the token with this id; null if there is none or it is deleted. */
export async function tokenById(db: Db, { tokenId }: { readonly tokenId: number }): Promise<Token | null> {
  const row = await undeletedTokens(db).selectAll().where('id', '=', tokenId).executeTakeFirst()
  return row ? tokenFromRow(row) : null
}

interface TokenNames {
  readonly token_id: number
  readonly token_name: string
  readonly username: string
}

/** Reads the names of tokens and their users, including deleted ones. Unknown ids are left out. */
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

/** Decrypts the key of a token, without `sk-`; null if the user has no such token. */
export async function revealKey(
  db: Db,
  { tokenId, userId }: { readonly tokenId: number; readonly userId: number },
  secrets: Secrets,
): Promise<string | null> {
  const [found] = await revealKeys(db, { tokenIds: [tokenId], userId }, secrets)
  return found?.key ?? null
}

/**
 * Decrypts the keys of those tokens in `tokenIds` that belong to the user, without `sk-`, oldest token first.
 */
export async function revealKeys(
  db: Db,
  { tokenIds, userId }: { readonly tokenIds: readonly number[]; readonly userId: number },
  secrets: Secrets,
): Promise<{ readonly tokenId: number; readonly key: string }[]> {
  const rows = await undeletedTokensOfUser(db, userId)
    .select(['id', 'key_cipher'])
    .where('id', 'in', tokenIds)
    .orderBy('id')
    .execute()
  return rows.map(({ id, key_cipher }) => ({ tokenId: id, key: decryptTokenKey(key_cipher, id, secrets) }))
}

/** A token with its plain key, without `sk-`. The key must be masked before it is shown. */
export interface TokenWithKey {
  readonly token: Token
  readonly key: string
}

/** An order of tokens. Tokens with equal values are ordered by id. */
export interface TokenOrder {
  readonly by: (typeof TOKEN_ORDERS)[number]
  readonly isAscending: boolean
}

/** Query for all tokens of a user. */
interface TokensOf {
  readonly userId: number
  /** Order of the result; newest tokens first if not given. */
  readonly order?: TokenOrder | undefined
}

/** Query for one page of a user's tokens. */
interface TokenPageQuery extends TokensOf {
  readonly offset: number
  readonly limit: number
}

/** Converts a row to a token with its decrypted key. */
function keyedFromRow(row: TokenRow, secrets: Secrets): TokenWithKey {
  return { token: tokenFromRow(row), key: decryptTokenKey(row.key_cipher, row.id, secrets) }
}

/** Decrypts the key of a token; empty if only a digest of the key is known. */
export function decryptTokenKey(cipher: string, tokenId: number, secrets: Secrets): string {
  return cipher === '' ? '' : unseal(secrets, cipher, { table: 'tokens', row: tokenId })
}

/** Reads a token of a user; null if there is none with this id. */
export async function findTokenWithKey(
  db: Db,
  { tokenId, userId }: { readonly tokenId: number; readonly userId: number },
  secrets: Secrets,
): Promise<TokenWithKey | null> {
  const row = await undeletedTokensOfUser(db, userId).selectAll().where('id', '=', tokenId).executeTakeFirst()
  return row ? keyedFromRow(row, secrets) : null
}

/** Lists all tokens of a user, newest first. */
export async function listTokensWithKeys(
  db: Db,
  { userId }: { readonly userId: number },
  secrets: Secrets,
): Promise<TokenWithKey[]> {
  const rows = await undeletedTokensOfUser(db, userId).selectAll().orderBy('id', 'desc').execute()
  return rows.map((row) => keyedFromRow(row, secrets))
}

/** Lists those of a user's tokens that have one of these ids, newest first. */
export async function findTokensWithKeys(
  db: Db,
  { userId, tokenIds }: { readonly userId: number; readonly tokenIds: readonly number[] },
  secrets: Secrets,
): Promise<TokenWithKey[]> {
  const rows = await undeletedTokensOfUser(db, userId)
    .where('id', 'in', tokenIds)
    .selectAll()
    .orderBy('id', 'desc')
    .execute()
  return rows.map((row) => keyedFromRow(row, secrets))
}

/** Lists the names of a user's tokens, without the keys, whose decryption would take time. */
export function ownTokenNames(
  db: Db,
  tokens: TokensOf,
): Promise<{ readonly id: number; readonly name: string }[]> {
  return orderedTokens(db, tokens).select(['id', 'name']).execute()
}

/** A token as shown in short lists. */
type ListedToken = Pick<Token, 'id' | 'name' | 'used_quota' | 'accessed_time' | 'budget'>

/** Reads the tokens of a user that were used most recently, and the number of all tokens of the user. */
export async function recentTokens(
  db: Db,
  { userId, limit }: { readonly userId: number; readonly limit: number },
): Promise<{ readonly total: number; readonly tokens: readonly ListedToken[] }> {
  const { total } = await countTokens(db, userId)
  const rows = await undeletedTokensOfUser(db, userId)
    .select(['id', 'name', 'used_quota', 'accessed_time', 'budget', 'budget_period'])
    .orderBy('accessed_time', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
  const tokens = rows.map(({ budget, budget_period, ...row }) => ({
    ...row,
    budget: budgetFromColumns(budget, budget_period),
  }))
  return { total, tokens }
}

/** Lists the groups that the tokens of a user name, each once. */
export async function tokenGroups(db: Db, { userId }: { readonly userId: number }): Promise<string[]> {
  const rows = await undeletedTokensOfUser(db, userId)
    .select('group_name')
    .distinct()
    .where('group_name', '<>', '')
    .orderBy('group_name')
    .execute()
  return rows.map(({ group_name }) => group_name)
}

/** Lists the names of a user's tokens with their keys. */
export async function ownTokenKeys(
  db: Db,
  tokens: TokensOf,
  secrets: Secrets,
): Promise<readonly { readonly id: number; readonly name: string; readonly key: string }[]> {
  const rows = await orderedTokens(db, tokens).select(['id', 'name', 'key_cipher']).execute()
  return rows.map(({ key_cipher: cipher, ...row }) => ({
    ...row,
    key: decryptTokenKey(cipher, row.id, secrets),
  }))
}

/** Reads one page of a user's tokens, and the number of all tokens of the user. */
export async function findTokenPageWithKeys(
  db: Db,
  page: TokenPageQuery,
  secrets: Secrets,
): Promise<{ readonly total: number; readonly tokens: readonly TokenWithKey[] }> {
  const { total } = await countTokens(db, page.userId)
  const rows = await pageOfTokens(db, page).selectAll().execute()
  return { total, tokens: rows.map((row) => keyedFromRow(row, secrets)) }
}

function countTokens(db: Db, userId: number): Promise<{ readonly total: number }> {
  return undeletedTokensOfUser(db, userId)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
}

/** Selects one page of a user's tokens. */
export function pageOfTokens(db: Db, { offset, limit, ...tokens }: TokenPageQuery) {
  return orderedTokens(db, tokens).limit(limit).offset(offset)
}

function orderedTokens(db: Db, { userId, order }: TokensOf) {
  const direction = order?.isAscending ? 'asc' : 'desc'
  const found = undeletedTokensOfUser(db, userId)
  return (order ? found.orderBy(order.by, direction) : found).orderBy('id', direction)
}

/** Columns that are summed over all users or all tokens, so that an import does not make a sum too large. */
const SUMMED_COLUMNS = [
  'users.quota',
  'users.used_quota',
  'users.request_count',
  'tokens.remain_quota',
  'tokens.used_quota',
] as const

/** A column whose amounts are summed. */
export type SummedColumn = (typeof SUMMED_COLUMNS)[number]

/** Sum of the absolute values of each column in `SUMMED_COLUMNS`. */
export type AmountSums = Readonly<Record<SummedColumn, number>>

/** The sums of a database without users. */
export const NO_AMOUNTS = Object.fromEntries(SUMMED_COLUMNS.map((column) => [column, 0])) as AmountSums

/** Ids, names and keys that are in use, including those of deleted users and tokens. */
export interface TakenIdentifiers {
  readonly users: readonly {
    readonly id: number
    /** The current name, or for a deleted user the last name before the deletion. */
    readonly username: string
    readonly group: string
    readonly role: number
    readonly isDeleted: boolean
    readonly accessTokenHash: string | null
  }[]
  readonly tokens: readonly { readonly id: number; readonly keyHash: string }[]
  readonly sums: AmountSums
}

/** Whether there are keys that are not looked up by the part up to their first hyphen. */
export async function hasImportedKeys(db: Db): Promise<boolean> {
  const found = await db
    .selectFrom('tokens')
    .select('id')
    .where('key_form', '<>', 'plain')
    .limit(1)
    .executeTakeFirst()
  return found !== undefined
}

/** Reads the identifiers in use by all users and tokens, and the sums of their amounts. */
export async function takenIdentifiers(db: Db): Promise<TakenIdentifiers> {
  const users = await db
    .selectFrom('users')
    .select(['id', 'username', 'first_username', 'group_name', 'role', 'deleted_time', 'access_token_hash'])
    // A deleted and an existing user may share a name. The existing one is last, because the last user of a
    // name is used.
    .orderBy((eb) => eb.case().when('deleted_time', 'is', null).then(1).else(0).end())
    .orderBy('id')
    .execute()
  const tokens = await db
    .selectFrom('tokens')
    .select(['id', 'key_hash', 'key_digest'])
    .orderBy('id')
    .execute()
  return {
    users: users.map((row) => ({
      id: row.id,
      username: row.deleted_time === null ? row.username : (row.first_username ?? row.username),
      group: row.group_name,
      role: row.role,
      isDeleted: row.deleted_time !== null,
      accessTokenHash: row.access_token_hash,
    })),
    tokens: tokens.map((row) => ({
      id: row.id,
      keyHash: row.key_digest === '' ? row.key_hash : importedKeyHash(row.key_digest),
    })),
    sums: await amountSums(db),
  }
}

// Summed as floating point, because a sum may exceed the largest integer of the database.
async function amountSums(db: Db): Promise<AmountSums> {
  const sums: Record<SummedColumn, number> = { ...NO_AMOUNTS }
  for (const column of SUMMED_COLUMNS) {
    const [table = ''] = column.split('.')
    const { rows } = await sql<{ sum: number | null }>`
      select sum(abs(cast(${sql.ref(column)} as double precision))) as sum from ${sql.table(table)}`.execute(
      db,
    )
    sums[column] = rows[0]?.sum ?? 0
  }
  return sums
}
