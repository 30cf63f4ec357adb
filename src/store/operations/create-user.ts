import { sql } from 'kysely'
import { GatewayError } from '../../errors.ts'
import type { ManagedUser } from '../../domain/profile.ts'
import type { Role, User } from '../../domain/user.ts'
import { hashAccessToken, type Secrets } from '../secrets.ts'
import { managedUserFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'
import { refuseName, takenName } from './refuse-name.ts'

/** A user to be made. */
export interface NewUser {
  /** Undefined = the next free one. */
  readonly id?: number | undefined
  readonly username: string
  /** Undefined = as the username. */
  readonly displayName?: string | undefined
  readonly role: Role
  readonly status: User['status']
  readonly group: string
  /** Quota units. */
  readonly quota: number
  /** Plain; only its HMAC is kept. Null = the user has none. */
  readonly accessToken: string | null
  /** Undefined = nobody can log in as this user. */
  readonly passwordHash?: string | undefined
  readonly remark?: string | undefined
  /** Unix seconds. */
  readonly createdTime: number
}

/**
 * Makes a user. The name of another user is refused, in whatever case, and one that does not show all of
 * itself; an id or an access token also if its user is deleted.
 */
export async function createUser(db: Db, user: NewUser, secrets: Secrets): Promise<ManagedUser> {
  await refuseName(db, user.username)
  return insertUser(db, user, secrets)
}

/** The same for a name that was looked at among all others, which is too much to do for each of thousands. */
export async function insertUser(db: Db, user: NewUser, secrets: Secrets): Promise<ManagedUser> {
  const accessTokenHash = user.accessToken === null ? null : hashAccessToken(secrets, user.accessToken)
  await refuseTaken(db, user, accessTokenHash)
  const row = await db
    .insertInto('users')
    .values({
      // Counted on from the largest there is, as PostgreSQL's own counter knows nothing of ids that were
      // given to it. No row of a user is ever removed, so that none is used twice.
      id: user.id ?? sql<number>`(select coalesce(max(id), 0) + 1 from users)`,
      username: user.username,
      display_name: user.displayName ?? user.username,
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
      created_time: user.createdTime,
      deleted_time: null,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return managedUserFromRow(row)
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
  if (!taken) return
  if (taken.username === user.username) throw takenName(user.username, taken.username)
  if (taken.id === user.id) {
    throw new GatewayError(
      'invalid_request',
      `the id ${user.id} belongs to the user "${taken.username}" already`,
    )
  }
  throw new GatewayError(
    'invalid_request',
    `the access token of the user "${user.username}" belongs to another user already`,
  )
}
