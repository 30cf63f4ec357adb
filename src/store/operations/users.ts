import type { Origin } from '../../domain/audit.ts'
import { GatewayError } from '../../errors.ts'
import { requireVersion, userVersion } from '../../domain/object-version.ts'
import {
  type ManagedUser,
  USER,
  USER_STATUS,
  type User,
  type UserChanges,
  type UserRow,
} from '../../domain/records/user.ts'
import { comparableName } from '../../domain/username.ts'
import { termColumns } from '../term-columns.ts'
import { managedUserFromRow, userFromRow } from '../user-rows.ts'
import { hashAccessToken, type Secrets } from '../secrets.ts'
import type { Db } from './operation.ts'
import { liveUser } from './find-accounts.ts'
import { refuseName } from './refuse-name.ts'
import { refuseLastRoot, refuseRole } from './refuse-user.ts'
import { endSessionsOf } from './sessions.ts'

/** Change of a user's quota, in quota units. */
export interface QuotaChange {
  /** `override` replaces the balance by `value`. */
  readonly mode: 'add' | 'subtract' | 'override'
  readonly value: number
  /** Maximum balance; a change above it, or below zero by subtraction, is refused. */
  readonly maxQuota: number
}

/** Change of one user. */
export interface UserChange {
  /** For the audit log. */
  readonly origin?: Origin
  readonly userId: number
  readonly fields?: UserChanges
  readonly quota?: QuotaChange | undefined
  /** Refuses with `changed_meanwhile` unless this is the user's version; undefined allows any. */
  readonly version?: string | undefined
  /** Refuses with `role_too_low` unless the user's role is below this; undefined allows any role. */
  readonly roleBelow?: number | undefined
  /**
   * Refuses with `invalid_request` unless this is the current hash; null means none, undefined allows any.
   */
  readonly passwordWas?: string | null | undefined
  /** HMAC of the session that a new password does not end. */
  readonly keptSession?: string | undefined
  /** True if replacing the password keeps the access token. */
  readonly keepAccessTokens?: boolean | undefined
}

/** Result of a change. */
export interface ChangedUser {
  readonly user: ManagedUser
  /** Difference of the user's quota, in quota units. */
  readonly quotaMoved: number
}

/**
 * Changes all or none of the given fields of a user; null if there is no such user. A new password ends the
 * user's sessions, as does enabling a disabled user. Replacing a password revokes the access token, because
 * someone with the old password may have created it. Called only by `Ledger.changeUser`, which keeps the
 * balance in memory consistent.
 */
export async function changeUser(
  db: Db,
  {
    userId,
    fields = {},
    quota,
    version,
    roleBelow,
    passwordWas,
    keptSession,
    keepAccessTokens = false,
  }: UserChange,
): Promise<ChangedUser | null> {
  const before = await liveUser(db, userId)
  if (!before) return null
  refuseRole(before, roleBelow)
  requireVersion(version, userVersion(managedUserFromRow(before)))
  if (passwordWas !== undefined && passwordWas !== before.password_hash) {
    throw new GatewayError('invalid_request', 'the password was changed meanwhile')
  }
  const role = fields.role ?? before.role
  const status = fields.status ?? before.status
  if (role < before.role || status > before.status) await refuseLastRoot(db, before)
  const renamed = await renamedColumns(db, before, fields.username)
  const quotaAfter = quota ? changedQuota(before.quota, quota) : before.quota
  const isReplaced = fields.passwordHash !== undefined && before.password_hash !== null
  const revoked = isReplaced && !keepAccessTokens ? { access_token_hash: null } : {}
  const row = await db
    .updateTable('users')
    .set({
      ...columnsOf(fields),
      ...renamed,
      ...revoked,
      ...(quota ? { quota: quotaAfter } : {}),
      role,
      status,
    })
    .where('id', '=', userId)
    .returningAll()
    .executeTakeFirstOrThrow()
  const isEnabled = status === USER_STATUS.enabled && before.status !== status
  if (isEnabled || fields.passwordHash !== undefined) await endSessionsOf(db, userId, keptSession)
  return { user: managedUserFromRow(row), quotaMoved: quotaAfter - before.quota }
}

/** Columns of a user who gets this name; throws if the name is not allowed. */
async function renamedColumns(
  db: Db,
  { id, username, first_username }: UserRow,
  name = username,
): Promise<Partial<UserRow>> {
  if (name === username) return {}
  await refuseName(db, name, id)
  return {
    username: name,
    first_username: first_username ?? username,
    comparable_name: comparableName(name),
  }
}

function columnsOf({ passwordHash, terms = {}, ...fields }: UserChanges): Partial<UserRow> {
  return {
    ...USER.toRow(fields as Partial<ManagedUser>),
    ...(passwordHash !== undefined && { password_hash: passwordHash }),
    ...termColumns(terms),
  }
}

function changedQuota(before: number, { mode, value, maxQuota }: QuotaChange): number {
  if (mode === 'override') return value
  const after = mode === 'add' ? before + value : before - value
  if (after > maxQuota) {
    throw new GatewayError(
      'invalid_request',
      `no user may have more than ${maxQuota} quota units: this one has ${before}, and ${value} more are too many`,
    )
  }
  if (mode === 'subtract' && after < 0) {
    throw new GatewayError('invalid_request', `this user has ${before} quota units, and ${value} are more`)
  }
  return after
}

/** Replaces a user's access token, storing its HMAC only; null if there is no such user. */
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
