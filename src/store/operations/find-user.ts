import type { User } from '../../domain/records/user.ts'
import { userFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'

/** Finds the user with this name; null if there is none. */
export async function userByName(db: Db, username: string): Promise<User | null> {
  const row = await db
    .selectFrom('users')
    .selectAll()
    .where('username', '=', username)
    .where('deleted_time', 'is', null)
    .executeTakeFirst()
  return row ? userFromRow(row) : null
}

/** Finds the user with this id; null if there is none. */
export async function userById(db: Db, userId: number): Promise<User | null> {
  const row = await db
    .selectFrom('users')
    .selectAll()
    .where('id', '=', userId)
    .where('deleted_time', 'is', null)
    .executeTakeFirst()
  return row ? userFromRow(row) : null
}

/** Finds a user by the HMAC of an access token; null if there is none. */
export async function userByAccessToken(db: Db, accessTokenHash: string): Promise<User | null> {
  const row = await db
    .selectFrom('users')
    .selectAll()
    .where('access_token_hash', '=', accessTokenHash)
    .where('deleted_time', 'is', null)
    .executeTakeFirst()
  return row ? userFromRow(row) : null
}

/** Lists users that are not deleted, oldest first. */
export async function listUsers(db: Db): Promise<User[]> {
  const rows = await db
    .selectFrom('users')
    .selectAll()
    .where('deleted_time', 'is', null)
    .orderBy('id')
    .execute()
  return rows.map(userFromRow)
}

/** Counts users, deleted ones included; 0 = the database is new. */
export async function countUsers(db: Db): Promise<number> {
  const { count } = await db
    .selectFrom('users')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return count
}
