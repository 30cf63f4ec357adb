import type { Insertable } from 'kysely'
import {
  type ManagedUser,
  type NewUser,
  USER,
  USER_STATUS,
  type User,
  type UserChanges,
  type UserRow,
} from '../../domain/records/user.ts'
import {
  comparableName,
  alphabetMixedWithLatin,
  nameDifference,
  escapeInvisible,
  isFullyVisible,
} from '../../domain/username.ts'
import type { KeptShareName } from '../../domain/kept.ts'
import { GatewayError } from '../../errors.ts'
import type { Database } from '../row-types.ts'
import { hashAccessToken, type Secrets } from '../secrets.ts'
import { newUsageLimitColumns, usageLimitColumns } from '../usage-limit-columns.ts'
import { columnsOfDeletedToken, managedUserFromRow, userFromRow, undeletedUsers } from '../account-rows.ts'
import { inChunks, type Db } from './operation.ts'
import type { ChangeOrigin } from '../../domain/audit.ts'
import { requireVersion, userVersion } from '../../domain/object-version.ts'
import { undeletedUser } from './find-accounts.ts'
import { Role } from '../../domain/role.ts'

/** Creates one user; see `createUsers`. */
export async function createUser(db: Db, user: NewUser, secrets: Secrets): Promise<ManagedUser> {
  const ids = await createUsers(db, [user], secrets)
  const row = await db.selectFrom('users').selectAll().where('id', 'in', ids).executeTakeFirstOrThrow()
  return managedUserFromRow(row)
}

function columnsOfNewUser(user: NewUser, accessTokenHash: string | null): Insertable<Database['users']> {
  return {
    ...USER.newRow({ ...user, display_name: user.display_name ?? user.username }),
    comparable_name: comparableName(user.username),
    first_username: null,
    password_hash: user.passwordHash ?? null,
    access_token_hash: accessTokenHash,
    ...newUsageLimitColumns(user.limits ?? {}),
  }
}

/** Error for a new user whose name, id or access token belongs to another user. */
function takenBy(user: NewUser, other: { readonly id: number; readonly username: string }): GatewayError {
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
 * Creates users; the number of statements does not depend on their number. Returns their ids in the given
 * order. Rejects a username with misleading characters, or one that counts as equal to that of another user.
 * Rejects an id or access token of another user, even a deleted one.
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
  await inChunks(rows, (some) => db.insertInto('users').values(some).execute(), MAX_ROWS)
  return ids
}

/**
 * Returns an id for each user: the declared id, or the next one after the largest id. The sequence of
 * PostgreSQL is not used, because it does not know explicit ids. Rows of users are never removed, so no id is
 * used twice.
 */
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

/** A change of a user's quota, in quota units. */
export interface QuotaChange {
  /** `override` sets the balance to `value`. */
  readonly mode: 'add' | 'subtract' | 'override'
  readonly value: number
  /** Maximum balance. A change that exceeds it, or a subtraction below zero, is refused. */
  readonly maxQuota: number
}

export interface UserChange {
  /** Who makes the change, for the audit log. */
  readonly origin?: ChangeOrigin
  readonly userId: number
  readonly fields?: UserChanges
  readonly quota?: QuotaChange | undefined
  /** If given, the change is refused with `changed_meanwhile` unless this is the user's version. */
  readonly version?: string | undefined
  /** If given, the change is refused with `role_too_low` unless the user's role is below this. */
  readonly roleBelow?: number | undefined
  /**
   * If given, the change is refused with `invalid_request` unless this is the current password hash (null for
   * no password).
   */
  readonly passwordWas?: string | null | undefined
  /** HMAC of the session that stays valid after a change of the password. */
  readonly remainingSession?: string | undefined
  /** Whether the access token stays valid after a change of the password. */
  readonly keepAccessTokens?: boolean | undefined
}

/** A user after a change by `changeUser`. */
interface ChangedUser {
  readonly user: ManagedUser
  /** Change of the user's quota, in quota units. */
  readonly quotaMoved: number
}

/**
 * Changes the given fields of a user, all or none; null if there is no such user. A new password or enabling
 * a disabled user ends the user's sessions. Replacing a password also revokes the access token, because
 * someone who knew the old password may have created it. Called only by `Ledger.changeUser`, which updates
 * the balance in memory.
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
    remainingSession,
    keepAccessTokens = false,
  }: UserChange,
): Promise<ChangedUser | null> {
  const before = await undeletedUser(db, userId)
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
  if (isEnabled || fields.passwordHash !== undefined) await endSessionsOf(db, userId, remainingSession)
  return { user: managedUserFromRow(row), quotaMoved: quotaAfter - before.quota }
}

/** Columns to change for a user who gets this name. Throws if the name is not allowed. */
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

function columnsOf({ passwordHash, limits = {}, ...fields }: UserChanges): Partial<UserRow> {
  return {
    ...USER.toRow(fields as Partial<ManagedUser>),
    ...(passwordHash !== undefined && { password_hash: passwordHash }),
    ...usageLimitColumns(limits),
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

/** Replaces a user's access token, storing only its HMAC; null if there is no such user. */
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

/**
 * Marks a user and all its tokens as deleted, and removes its sessions, identities, password and access
 * token. Stored responses, signatures and answers must be removed afterwards (`removeStoredDataOfUser`). Returns
 * false if there is no such user. The row stays, because charges refer to it, but gets another name, so that
 * the username becomes free.
 */
export async function deleteUser(
  db: Db,
  user: {
    readonly userId: number
    /** Time of the deletion in Unix seconds. */
    readonly deleted_time: number
    /** If given, the deletion is refused with `role_too_low` unless the user's role is below this. */
    readonly roleBelow?: number | undefined
  },
): Promise<boolean> {
  const { userId, deleted_time } = user
  const row = await undeletedUser(db, userId)
  if (!row) return false
  refuseRole(row, user.roleBelow)
  await refuseLastRoot(db, row)
  await db
    .updateTable('users')
    .set({
      deleted_time,
      access_token_hash: null,
      password_hash: null,
      username: await nameOfDeleted(db, row),
      first_username: row.first_username ?? row.username,
      comparable_name: null,
    })
    .where('id', '=', userId)
    .execute()
  await db
    .updateTable('tokens')
    .set(columnsOfDeletedToken(deleted_time))
    .where('user_id', '=', userId)
    .where('deleted_time', 'is', null)
    .execute()
  // This row marks the user until the stored data is removed, so that an interrupted removal is continued.
  await db
    .insertInto('kept_sums')
    .values({ share: 'user' satisfies KeptShareName, user_id: userId, bytes: 0 })
    .onConflict((on) => on.doNothing())
    .execute()
  await db.deleteFrom('identities').where('user_id', '=', userId).execute()
  await endSessionsOf(db, userId)
  return true
}

/** Returns a name such as `ann (deleted 7)`, with a number appended if that name is taken. */
async function nameOfDeleted(db: Db, { id, username }: UserRow): Promise<string> {
  const plain = `${username} (deleted ${id})`
  for (let name = plain, more = 2; ; name = `${plain} ${more++}`) {
    const taken = await db.selectFrom('users').select('id').where('username', '=', name).executeTakeFirst()
    if (!taken) return name
  }
}

/** Throws `role_too_low` unless the role is below `roleBelow`. Call it in the transaction that writes. */
function refuseRole({ username, role }: UserRow, roleBelow: number | undefined): void {
  if (roleBelow === undefined || role < roleBelow) return
  throw new GatewayError('role_too_low', `the role of the user "${username}" is not below yours`)
}

/** Throws if this is the last enabled root user. */
async function refuseLastRoot(db: Db, { id, username, role }: UserRow): Promise<void> {
  if (role !== Role.root) return
  const other = await undeletedUsers(db)
    .select('id')
    .where('role', '=', Role.root)
    .where('status', '=', USER_STATUS.enabled)
    .where('id', '!=', id)
    .executeTakeFirst()
  if (other) return
  throw new GatewayError(
    'invalid_request',
    `"${username}" is the last root user: it cannot be disabled, demoted or deleted`,
  )
}

/**
 * Throws if a user may not have this name: it contains invisible characters, mixes alphabets, or counts as
 * equal to the name of another user. `own` is the id of the user who gets the name. Existing names are not
 * checked.
 */
async function refuseName(db: Db, username: string, own?: number): Promise<void> {
  refuseImitation(username)
  const others = (await namesakes(db, [username])).filter(({ id }) => id !== own)
  const taken = others.find((other) => other.username === username) ?? others[0]
  if (taken) throw takenName(username, taken.username)
}

/**
 * Throws if new users may not have these names, by the rules of `refuseName`, or if two of the names count as
 * equal.
 */
async function refuseNames(db: Db, usernames: readonly string[]): Promise<void> {
  usernames.forEach(refuseImitation)
  const taken = new Map(
    (await namesakes(db, usernames)).map((other) => [comparableName(other.username), other.username]),
  )
  for (const username of usernames) {
    const name = comparableName(username)
    const theirs = taken.get(name)
    if (theirs !== undefined) throw takenName(username, theirs)
    taken.set(name, username)
  }
}

function refuseImitation(username: string): void {
  if (!isFullyVisible(username))
    throw new GatewayError(
      'invalid_request',
      `username: expected a name without bidirectional controls and invisible characters, found "${escapeInvisible(username)}"`,
    )
  const alphabet = alphabetMixedWithLatin(username)
  if (alphabet === undefined) return
  throw new GatewayError(
    'invalid_request',
    `username: expected letters of one alphabet, found Latin and ${alphabet} ones in "${username}"`,
  )
}

/** Users that are not deleted and whose name counts as equal to one of these. */
function namesakes(
  db: Db,
  usernames: readonly string[],
): Promise<{ readonly id: number; readonly username: string }[]> {
  return inChunks(usernames.map(comparableName), (names) =>
    db.selectFrom('users').select(['id', 'username']).where('comparable_name', 'in', names).execute(),
  )
}

/** Error for a name that another user has, in the same or in a different form. */
function takenName(username: string, theirs: string): GatewayError {
  const alone =
    username === theirs
      ? ''
      : `, and "${username}" differs from it in ${nameDifference(username, theirs)} alone`
  return new GatewayError('invalid_request', `there is a user "${escapeInvisible(theirs)}" already${alone}`)
}

/** Ends all sessions of a user, except the one with the HMAC `remainingHash`. */
export async function endSessionsOf(db: Db, userId: number, remainingHash?: string): Promise<void> {
  await db
    .deleteFrom('sessions')
    .where('user_id', '=', userId)
    .$if(remainingHash !== undefined, (query) => query.where('id_hash', '!=', remainingHash as string))
    .execute()
}
