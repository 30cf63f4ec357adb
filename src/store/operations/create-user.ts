import { type Insertable, sql } from 'kysely'
import { GatewayError } from '../../errors.ts'
import type { TermChanges } from '../../domain/call-terms.ts'
import type { ManagedUser } from '../../domain/profile.ts'
import type { Role, User } from '../../domain/user.ts'
import { comparableName } from '../../domain/username.ts'
import type { Database } from '../schema.ts'
import { hashAccessToken, type Secrets } from '../secrets.ts'
import { newTermColumns } from '../term-columns.ts'
import { managedUserFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'
import { refuseName, takenName } from './refuse-name.ts'

/** User to be created. */
export interface NewUser {
  /** Undefined = the next free one. */
  readonly id?: number | undefined
  readonly username: string
  /** Undefined = the username. */
  readonly display_name?: string | undefined
  readonly role: Role
  readonly status: User['status']
  readonly group: string
  /** Quota units. */
  readonly quota: number
  /** Plain access token, of which only the HMAC is stored; null = none. */
  readonly accessToken: string | null
  /** Undefined = no login with a password. */
  readonly passwordHash?: string | undefined
  readonly remark?: string | undefined
  readonly terms?: TermChanges | undefined
  /** Unix seconds. */
  readonly created_time: number
}

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
      // The next id follows the largest, because PostgreSQL's sequence ignores explicit ids. Rows of users
      // are never removed, so no id is used twice.
      id: user.id ?? sql<number>`(select coalesce(max(id), 0) + 1 from users)`,
      ...columnsOfNewUser(user, accessTokenHash),
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return managedUserFromRow(row)
}

/** Columns of a new user, without its id. */
export function columnsOfNewUser(
  user: NewUser,
  accessTokenHash: string | null,
): Omit<Insertable<Database['users']>, 'id'> {
  return {
    username: user.username,
    comparable_name: comparableName(user.username),
    display_name: user.display_name ?? user.username,
    role: user.role,
    status: user.status,
    email: '',
    code_host_id: '',
    chat_a_id: '',
    oidc_id: '',
    chat_b_id: '',
    chat_c_id: '',
    forum_id: '',
    group_name: user.group,
    quota: user.quota,
    used_quota: 0,
    request_count: 0,
    aff_code: '',
    aff_count: 0,
    aff_quota: 0,
    aff_history_quota: 0,
    inviter_id: 0,
    setting: '',
    payment_customer: '',
    sidebar_modules: '',
    password_hash: user.passwordHash ?? null,
    access_token_hash: accessTokenHash,
    remark: user.remark ?? '',
    ...newTermColumns(user.terms ?? {}),
    created_time: user.created_time,
    deleted_time: null,
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
