import { type Insertable, sql } from 'kysely'
import { type ManagedUser, type NewUser, USER } from '../../domain/records/user.ts'
import { comparableName } from '../../domain/username.ts'
import { GatewayError } from '../../errors.ts'
import type { Database } from '../schema.ts'
import { hashAccessToken, type Secrets } from '../secrets.ts'
import { newTermColumns } from '../term-columns.ts'
import { managedUserFromRow } from '../user-rows.ts'
import { inChunks } from './in-chunks.ts'
import type { Db } from './operation.ts'
import { refuseName, refuseNames, takenName } from './refuse-name.ts'

/**
 * Creates a user. Refuses a name that imitates, or equals another user's as names are compared; refuses an id
 * or an access token of another user, deleted ones included.
 */
export async function createUser(db: Db, user: NewUser, secrets: Secrets): Promise<ManagedUser> {
  await refuseName(db, user.username)
  const accessTokenHash = user.accessToken === null ? null : hashAccessToken(secrets, user.accessToken)
  await refuseTaken(db, user, accessTokenHash)
  const row = await db
    .insertInto('users')
    .values({
      ...columnsOfNewUser(user, accessTokenHash),
      // The next id follows the largest, because PostgreSQL's sequence ignores explicit ids. Rows of users
      // are never removed, so no id is used twice.
      id: user.id ?? sql<number>`(select coalesce(max(id), 0) + 1 from users)`,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return managedUserFromRow(row)
}

/** Columns of a new user. */
export function columnsOfNewUser(
  user: NewUser,
  accessTokenHash: string | null,
): Insertable<Database['users']> {
  return {
    ...USER.newRow({ ...user, display_name: user.display_name ?? user.username }),
    comparable_name: comparableName(user.username),
    first_username: null,
    password_hash: user.passwordHash ?? null,
    access_token_hash: accessTokenHash,
    ...newTermColumns(user.terms ?? {}),
  }
}

async function refuseTaken(db: Db, user: NewUser, accessTokenHash: string | null): Promise<void> {
  const taken = await db
    .selectFrom('users')
    .select(['id', 'username', 'access_token_hash'])
    .where((eb) =>
      eb.or([
        eb('username', '=', user.username),
        ...(user.id === undefined ? [] : [eb('id', '=', user.id)]),
        ...(accessTokenHash === null ? [] : [eb('access_token_hash', '=', accessTokenHash)]),
      ]),
    )
    .executeTakeFirst()
  if (taken) throw takenBy(user, taken)
}

/** Error for a new user that shares its name, id or access token with another one. */
export function takenBy(
  user: NewUser,
  other: { readonly id: number; readonly username: string },
): GatewayError {
  if (other.username === user.username) return takenName(user.username, other.username)
  if (other.id === user.id)
    return new GatewayError(
      'invalid_request',
      `the id ${user.id} belongs to the user "${other.username}" already`,
    )
  return new GatewayError(
    'invalid_request',
    `the access token of the user "${user.username}" belongs to another user already`,
  )
}

/** Maximum number of rows in one statement, because databases limit the number of parameters. */
const MAX_ROWS = 500

/**
 * Creates users like `createUser`, with a few statements for any number of them. Returns their ids in the
 * given order.
 */
export async function createUsers(db: Db, users: readonly NewUser[], secrets: Secrets): Promise<number[]> {
  if (users.length === 0) return []
  await refuseNames(
    db,
    users.map(({ username }) => username),
  )
  const hashed = users.map((user) => ({
    user,
    hash: user.accessToken === null ? null : hashAccessToken(secrets, user.accessToken),
  }))
  await refuseTakenNames(db, hashed)
  const ids = await newIds(db, users)
  const rows = hashed.map(({ user, hash }, index) => ({ ...columnsOfNewUser(user, hash), id: ids[index] }))
  for (let start = 0; start < rows.length; start += MAX_ROWS)
    await db
      .insertInto('users')
      .values(rows.slice(start, start + MAX_ROWS))
      .execute()
  return ids
}

/** Ids in order: the declared ones, and otherwise the one after the largest. */
async function newIds(db: Db, users: readonly NewUser[]): Promise<number[]> {
  const { last } = await db
    .selectFrom('users')
    .select((eb) => eb.fn.max('id').as('last'))
    .executeTakeFirstOrThrow()
  let largest = last ?? 0
  const given = new Map<number, NewUser>()
  return users.map((user) => {
    const id = user.id ?? largest + 1
    const other = given.get(id)
    if (other) throw takenBy(user, { id, username: other.username })
    given.set(id, user)
    largest = Math.max(largest, id)
    return id
  })
}

async function refuseTakenNames(
  db: Db,
  users: readonly { readonly user: NewUser; readonly hash: string | null }[],
): Promise<void> {
  const columns = ['id', 'username', 'access_token_hash'] as const
  const from = db.selectFrom('users').select(columns)
  const ids = users.flatMap(({ user }) => (user.id === undefined ? [] : [user.id]))
  const hashes = users.flatMap(({ hash }) => (hash === null ? [] : [hash]))
  const names = users.map(({ user }) => user.username)
  const taken = [
    ...(await inChunks(names, (some) => from.where('username', 'in', some).execute())),
    ...(await inChunks(ids, (some) => from.where('id', 'in', some).execute())),
    ...(await inChunks(hashes, (some) => from.where('access_token_hash', 'in', some).execute())),
  ]
  if (taken.length === 0) return
  const byName = new Map(taken.map((other) => [other.username, other]))
  const byId = new Map(taken.map((other) => [other.id, other]))
  const byHash = new Map(taken.map((other) => [other.access_token_hash, other]))
  for (const { user, hash } of users) {
    const other =
      byName.get(user.username) ??
      (user.id === undefined ? undefined : byId.get(user.id)) ??
      (hash === null ? undefined : byHash.get(hash))
    if (other) throw takenBy(user, other)
  }
}
