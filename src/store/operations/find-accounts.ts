import type { ManagedUser, User, UserRow } from '../../domain/records/user.ts'
import { liveUsers } from '../live-rows.ts'
import { managedUserFromRow, userFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'

/** Finds the user with this name; null if there is none. */
export async function userByName(db: Db, username: string): Promise<User | null> {
  const row = await liveUsers(db).selectAll().where('username', '=', username).executeTakeFirst()
  return row ? userFromRow(row) : null
}

/** Finds the user with this id; null if there is none. */
export async function userById(db: Db, userId: number): Promise<User | null> {
  const row = await liveUser(db, userId)
  return row ? userFromRow(row) : null
}

/** Finds a user by the HMAC of an access token; null if there is none. */
export async function userByAccessToken(db: Db, accessTokenHash: string): Promise<User | null> {
  const row = await liveUsers(db)
    .selectAll()
    .where('access_token_hash', '=', accessTokenHash)
    .executeTakeFirst()
  return row ? userFromRow(row) : null
}

/** Lists users that are not deleted, oldest first. */
export async function listUsers(db: Db): Promise<User[]> {
  const rows = await liveUsers(db).selectAll().orderBy('id').execute()
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

/** User and password hash; null if no password was ever set. Must not be logged or sent. */
interface Credentials {
  readonly user: ManagedUser
  readonly passwordHash: string | null
}

/** Reads the credentials of the user with this name; null if there is none. */
export async function credentials(
  db: Db,
  { username }: { readonly username: string },
): Promise<Credentials | null> {
  const row = await liveUsers(db).selectAll().where('username', '=', username).executeTakeFirst()
  return row ? { user: managedUserFromRow(row), passwordHash: row.password_hash } : null
}

/** Tells whether any user has an imported hash of bcrypt. */
export async function hasBcryptPasswords(db: Db): Promise<boolean> {
  const row = await liveUsers(db)
    .select('id')
    .where('password_hash', 'like', '$2%')
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Search for users. */
interface UserSearch {
  /**
   * Part of the username, display name or e-mail address, in any case; or the whole id. Empty matches all.
   */
  readonly keyword: string
  /** Undefined matches any group. */
  readonly group: string | undefined
  readonly offset: number
  readonly limit: number
}

/** Reads a page of the matching users that are not deleted, newest first, and their total number. */
export async function pageOfUsers(
  db: Db,
  search: UserSearch,
): Promise<{ readonly users: readonly ManagedUser[]; readonly total: number }> {
  const ids = await matchingIds(db, search)
  const shown = ids.slice(search.offset, search.offset + search.limit)
  if (shown.length === 0) return { users: [], total: ids.length }
  const rows = await db
    .selectFrom('users')
    .selectAll()
    .where('id', 'in', shown)
    .orderBy('id', 'desc')
    .execute()
  return { users: rows.map(managedUserFromRow), total: ids.length }
}

// Compares here, because databases differ in case conversion beyond ASCII.
async function matchingIds(db: Db, { keyword, group }: UserSearch): Promise<number[]> {
  let query = liveUsers(db).select(['id', 'username', 'display_name', 'email']).orderBy('id', 'desc')
  if (group !== undefined) query = query.where('group_name', '=', group)
  const sought = keyword.toLowerCase()
  return (await query.execute())
    .filter(
      (row) =>
        String(row.id) === keyword ||
        [row.username, row.display_name, row.email].some((text) => text.toLowerCase().includes(sought)),
    )
    .map(({ id }) => id)
}

/** Reads all that people manage of a user; null if there is none with this id. */
export async function managedUser(
  db: Db,
  { userId }: { readonly userId: number },
): Promise<ManagedUser | null> {
  const row = await liveUser(db, userId)
  return row ? managedUserFromRow(row) : null
}

/** Reads the row of a user that is not deleted. */
export function liveUser(db: Db, userId: number): Promise<UserRow | undefined> {
  return liveUsers(db).selectAll().where('id', '=', userId).executeTakeFirst()
}
