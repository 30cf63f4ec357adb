import { type Insertable, sql } from 'kysely'
import { GatewayError } from '../../errors.ts'
import { type ManagedUser, type NewUser, USER } from '../../domain/records/user.ts'
import { comparableName } from '../../domain/username.ts'
import type { Database } from '../schema.ts'
import { hashAccessToken, type Secrets } from '../secrets.ts'
import { newTermColumns } from '../term-columns.ts'
import { managedUserFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'
import { refuseName, takenName } from './refuse-name.ts'

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
