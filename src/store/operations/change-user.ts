import { GatewayError } from '../../errors.ts'
import type { ManagedUser } from '../../domain/profile.ts'
import { type Role, USER_STATUS, type User } from '../../domain/user.ts'
import { managedUserFromRow, userFromRow } from '../user-rows.ts'
import { hashAccessToken, type Secrets } from '../secrets.ts'
import type { UserRow } from '../schema.ts'
import type { Db } from './operation.ts'
import { liveUser } from './profile.ts'
import { refuseName } from './refuse-name.ts'
import { refuseLastRoot, refuseRole } from './refuse-user.ts'
import { endSessionsOf } from './sessions.ts'

/** What may be written of a user; what is not there stays as it is. */
export interface UserFields {
  readonly username?: string | undefined
  readonly displayName?: string | undefined
  readonly email?: string | undefined
  readonly role?: Role | undefined
  readonly status?: User['status'] | undefined
  readonly group?: string | undefined
  readonly remark?: string | undefined
  readonly passwordHash?: string | undefined
}

/** How a user's quota is to change, in whole units. */
export interface QuotaChange {
  /** `override` puts `value` in the place of what is there. */
  readonly mode: 'add' | 'subtract' | 'override'
  readonly value: number
  /** More than this is refused, and so is to subtract more than there is. */
  readonly maxQuota: number
}

/** A change of one user. */
export interface UserChange {
  readonly userId: number
  readonly fields?: UserFields
  readonly quota?: QuotaChange | undefined
  /** Refused with `role_too_low` unless the user's role is below this; undefined = whoever it is. */
  readonly roleBelow?: number | undefined
  /** Refused with `invalid_request` unless the password is still this one; undefined = whatever it is. */
  readonly passwordWas?: string | undefined
  /** A password that replaces another leaves the access token be. */
  readonly keepAccessTokens?: boolean | undefined
}

/** What a change came to. */
export interface ChangedUser {
  readonly user: ManagedUser
  /** By how much the user's quota is more than before. */
  readonly quotaMoved: number
}

/**
 * Writes the fields that are there, all or none. A new password ends the user's sessions, and so does
 * enabling a user who was disabled; one that replaces another revokes the access token, which whoever knew
 * the other may have had made. Null if there is no such user. Called through `Ledger.changeUser` alone, for
 * the balance in memory must move with the row.
 */
export async function changeUser(
  db: Db,
  { userId, fields = {}, quota, roleBelow, passwordWas, keepAccessTokens = false }: UserChange,
): Promise<ChangedUser | null> {
  const before = await liveUser(db, userId)
  if (!before) return null
  refuseRole(before, roleBelow)
  if (passwordWas !== undefined && passwordWas !== before.password_hash) {
    throw new GatewayError('invalid_request', 'the password was changed meanwhile')
  }
  const role = fields.role ?? before.role
  const status = fields.status ?? before.status
  if (role < before.role || status > before.status) await refuseLastRoot(db, before)
  const isRenamed = fields.username !== undefined && fields.username !== before.username
  if (isRenamed) await refuseName(db, fields.username ?? '', userId)
  const firstName = isRenamed ? { first_username: before.first_username ?? before.username } : {}
  const quotaAfter = quota ? changedQuota(before.quota, quota) : before.quota
  const isReplaced = fields.passwordHash !== undefined && before.password_hash !== null
  const revoked = isReplaced && !keepAccessTokens ? { access_token_hash: null } : {}
  const row = await db
    .updateTable('users')
    .set({
      ...columnsOf(fields),
      ...firstName,
      ...revoked,
      ...(quota ? { quota: quotaAfter } : {}),
      role,
      status,
    })
    .where('id', '=', userId)
    .returningAll()
    .executeTakeFirstOrThrow()
  const isEnabled = status === USER_STATUS.enabled && before.status !== status
  if (isEnabled || fields.passwordHash !== undefined) await endSessionsOf(db, userId)
  return { user: managedUserFromRow(row), quotaMoved: quotaAfter - before.quota }
}

function columnsOf(fields: UserFields): Partial<UserRow> {
  const columns = {
    username: fields.username,
    display_name: fields.displayName,
    email: fields.email,
    group_name: fields.group,
    remark: fields.remark,
    password_hash: fields.passwordHash,
  }
  return Object.fromEntries(Object.entries(columns).filter(([, value]) => value !== undefined))
}

function changedQuota(before: number, { mode, value, maxQuota: most }: QuotaChange): number {
  if (mode === 'override') return value
  const after = mode === 'add' ? before + value : before - value
  if (after > most) {
    throw new GatewayError(
      'invalid_request',
      `no user may have more than ${most} quota units: this one has ${before}, and ${value} more are too many`,
    )
  }
  if (mode === 'subtract' && after < 0) {
    throw new GatewayError('invalid_request', `this user has ${before} quota units, and ${value} are more`)
  }
  return after
}

/**
 * Gives a user an access token in the place of any other; only its HMAC is kept. Null if there is no such
 * user.
 */
export async function setAccessToken(
  db: Db,
  { userId, accessToken }: { readonly userId: number; readonly accessToken: string },
  secrets: Secrets,
): Promise<User | null> {
  const row = await db
    .updateTable('users')
    .set({ access_token_hash: hashAccessToken(secrets, accessToken) })
    .where('id', '=', userId)
    .where('deleted_time', 'is', null)
    .returningAll()
    .executeTakeFirst()
  return row ? userFromRow(row) : null
}
