import {
  USER_STATUS,
  type User,
  type UserRow,
  type ManagedUser,
  type NewUser,
} from '../../domain/records/user.ts'
import { hashAccessToken, hashSession, seal, type Secrets, unseal, hmacOf } from '../secrets.ts'
import { userFromRow, managedUserFromRow } from '../account-rows.ts'
import type { Db } from './operation.ts'
import { undeletedUser } from './find-accounts.ts'
import { createUser, endSessionsOf } from './users.ts'

/** Maximum number of expired sessions, or of expired sign-in states, that one sign-in removes. */
const MAX_REMOVED = 1_000
/** Maximum number of sessions of a user; a new one ends those that were used longest ago. */
const MAX_SESSIONS = 100

/** How a user signed in. This is checked again in the transaction that creates the session. */
export type SignInProof =
  | {
      readonly kind: 'password'
      /** Password hash with which the password was compared. */
      readonly passwordHash: string
      /** New hash of the same password, which replaces the old hash. */
      readonly newHash?: string | undefined
    }
  /** Proof of a sign-in with an access token. The session is valid only as long as the token. */
  | { readonly kind: 'access token'; readonly accessToken: string }
  | {
      readonly kind: 'identity'
      readonly issuer: string
      readonly subject: string
      /** URL that ends the session at the identity provider. */
      readonly logoutUrl: string | undefined
    }

/** A session to be created. Times are in Unix seconds. */
interface NewSession {
  readonly userId: number
  /** Plain value of the cookie, of which only an HMAC is stored. */
  readonly cookieValue: string
  readonly proof: SignInProof
  readonly created_time: number
  readonly expiresTime: number
  /** The client's address and `User-Agent`, which are shown to the user. */
  readonly address: string
  readonly userAgent: string
}

/** The session to which a request belongs. */
interface LiveSession {
  readonly user: User
  /** Time of the last request in Unix seconds. */
  readonly lastUsed: number
}

/** A session as shown to its user. Times are in Unix seconds. */
interface SessionEntry {
  /** HMAC of the cookie's value. */
  readonly idHash: string
  readonly created_time: number
  readonly lastUsed: number
  readonly address: string
  readonly userAgent: string
}

/**
 * Creates a session if the user exists and is enabled, and the sign-in is still valid. Resolves to whether it
 * was created. Also removes expired sessions of all users, and the user's least recently used ones above `MAX_SESSIONS`. No other
 * cleanup is needed, because only this operation adds sessions.
 */
export async function beginSession(db: Db, session: NewSession, secrets: Secrets): Promise<boolean> {
  await removeExpired(db, session.created_time)
  const { proof, cookieValue } = session
  const user = await undeletedUser(db, session.userId)
  if (!user || user.status !== USER_STATUS.enabled || !(await holds(db, user, proof, secrets))) return false
  if (proof.kind === 'password' && proof.newHash !== undefined) {
    // The password itself stays the same, so sessions and access tokens stay valid.
    await db
      .updateTable('users')
      .set({ password_hash: proof.newHash })
      .where('id', '=', session.userId)
      .execute()
  }
  await removeLeastUsed(db, session.userId)
  const idHash = hashSession(secrets, cookieValue)
  const logoutUrl = proof.kind === 'identity' ? proof.logoutUrl : undefined
  await db
    .insertInto('sessions')
    .values({
      id_hash: idHash,
      user_id: session.userId,
      created_time: session.created_time,
      expires_time: session.expiresTime,
      last_used: session.created_time,
      address: session.address,
      user_agent: session.userAgent,
      access_token_hash: proof.kind === 'access token' ? hashAccessToken(secrets, proof.accessToken) : null,
      logout_cipher: logoutUrl === undefined ? null : seal(secrets, logoutUrl, placeOf(idHash)),
    })
    .execute()
  return true
}

async function holds(db: Db, user: UserRow, proof: SignInProof, secrets: Secrets): Promise<boolean> {
  switch (proof.kind) {
    case 'password':
      return user.password_hash === proof.passwordHash
    case 'access token':
      return user.access_token_hash === hashAccessToken(secrets, proof.accessToken)
    case 'identity':
      return (await userOfIdentity(db, proof))?.id === user.id
  }
}

/**
 * Finds a session by its HMAC. Null if it is unknown or expired, if the user was deleted, or if the session
 * began with an access token that was replaced.
 */
export async function liveSession(
  db: Db,
  { sessionHash, nowSeconds }: { readonly sessionHash: string; readonly nowSeconds: number },
): Promise<LiveSession | null> {
  const session = await db
    .selectFrom('sessions')
    .select(['user_id', 'last_used', 'access_token_hash'])
    .where('id_hash', '=', sessionHash)
    .where('expires_time', '>', nowSeconds)
    .executeTakeFirst()
  const row = session && (await undeletedUser(db, session.user_id))
  if (!row || !isOfToken(session.access_token_hash, row)) return null
  return { user: userFromRow(row), lastUsed: session.last_used }
}

/** Lists the valid sessions of a user, latest first. */
export async function sessionsOf(
  db: Db,
  { userId, nowSeconds }: { readonly userId: number; readonly nowSeconds: number },
): Promise<readonly SessionEntry[]> {
  const user = await undeletedUser(db, userId)
  const rows = await db
    .selectFrom('sessions')
    .selectAll()
    .where('user_id', '=', userId)
    .where('expires_time', '>', nowSeconds)
    .orderBy('created_time', 'desc')
    .orderBy('id_hash')
    .execute()
  return rows
    .filter((row) => user && isOfToken(row.access_token_hash, user))
    .map((row) => ({
      idHash: row.id_hash,
      created_time: row.created_time,
      lastUsed: Math.max(row.last_used, row.created_time),
      address: row.address,
      userAgent: row.user_agent,
    }))
}

function isOfToken(accessTokenHash: string | null, user: UserRow): boolean {
  return accessTokenHash === null || accessTokenHash === user.access_token_hash
}

/** Records that a session was used. Has no effect on a session that has ended. */
export async function recordSessionUse(
  db: Db,
  { sessionHash, nowSeconds }: { readonly sessionHash: string; readonly nowSeconds: number },
): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ last_used: nowSeconds })
    .where('id_hash', '=', sessionHash)
    .where('last_used', '<', nowSeconds)
    .execute()
}

interface EndedSession {
  /** URL that ends the session at the identity provider; null if there is none. */
  readonly logoutUrl: string | null
}

/** Ends the session that belongs to a cookie; null if there is none. */
export async function endSession(
  db: Db,
  { cookieValue }: { readonly cookieValue: string },
  secrets: Secrets,
): Promise<EndedSession | null> {
  const idHash = hashSession(secrets, cookieValue)
  const row = await db
    .deleteFrom('sessions')
    .where('id_hash', '=', idHash)
    .returning('logout_cipher')
    .executeTakeFirst()
  if (!row) return null
  const cipher = row.logout_cipher
  return { logoutUrl: cipher === null ? null : unseal(secrets, cipher, placeOf(idHash)) }
}

/** Ends one of a user's sessions, given by its HMAC. Resolves to whether there was such a session. */
export async function endOwnSession(
  db: Db,
  { userId, idHash }: { readonly userId: number; readonly idHash: string },
): Promise<boolean> {
  const result = await db
    .deleteFrom('sessions')
    .where('id_hash', '=', idHash)
    .where('user_id', '=', userId)
    .executeTakeFirst()
  return result.numDeletedRows > 0n
}

function placeOf(idHash: string): { readonly table: string; readonly row: string } {
  return { table: 'sessions', row: idHash }
}

async function removeExpired(db: Db, nowSeconds: number): Promise<void> {
  await db
    .deleteFrom('sessions')
    .where('id_hash', 'in', (eb) =>
      eb.selectFrom('sessions').select('id_hash').where('expires_time', '<=', nowSeconds).limit(MAX_REMOVED),
    )
    .execute()
}

/** Makes room for one more session of the user. */
async function removeLeastUsed(db: Db, userId: number): Promise<void> {
  await db
    .deleteFrom('sessions')
    .where('id_hash', 'in', (eb) =>
      eb
        .selectFrom('sessions')
        .select('id_hash')
        .where('user_id', '=', userId)
        .orderBy('last_used', 'desc')
        .orderBy('id_hash')
        .offset(MAX_SESSIONS - 1)
        .limit(MAX_REMOVED),
    )
    .execute()
}

/** Identity of a user at an OpenID Connect provider. */
export interface Identity {
  readonly issuer: string
  readonly subject: string
}

/** Finds the user who has an identity; null if there is none. */
export async function userByIdentity(db: Db, identity: Identity): Promise<ManagedUser | null> {
  const row = await userOfIdentity(db, identity)
  return row ? managedUserFromRow(row) : null
}

/** Reads the row of the user who has an identity; undefined if there is none. */
export async function userOfIdentity(db: Db, { issuer, subject }: Identity): Promise<UserRow | undefined> {
  const found = await db
    .selectFrom('identities')
    .select('user_id')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst()
  return found && undeletedUser(db, found.user_id)
}

interface LinkedIdentity extends Identity {
  /** Time at which the identity was linked to the user, in Unix seconds. */
  readonly created_time: number
}

/** Lists the identities of a user, oldest first. */
export async function identitiesOf(db: Db, userId: number): Promise<readonly LinkedIdentity[]> {
  return db
    .selectFrom('identities')
    .select(['issuer', 'subject', 'created_time as created_time'])
    .where('user_id', '=', userId)
    .orderBy('created_time')
    .orderBy('issuer')
    .orderBy('subject')
    .execute()
}

/**
 * Creates a user with an identity. If another sign-in has just created that user, resolves to it. Like
 * `createUser`, refuses the name of an existing user, because an identity is never linked to a user by name.
 */
export async function createUserOfIdentity(
  db: Db,
  { identity, user }: { readonly identity: Identity; readonly user: NewUser },
  secrets: Secrets,
): Promise<ManagedUser> {
  const present = await userOfIdentity(db, identity)
  if (present) return managedUserFromRow(present)
  const { id } = await createUser(db, user, secrets)
  await db
    .insertInto('identities')
    .values({ ...identity, user_id: id, created_time: user.created_time })
    .execute()
  const row = await db
    .updateTable('users')
    .set({ oidc_id: identity.subject })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  return managedUserFromRow(row)
}

/**
 * Marks the state of a sign-in (a value sent to the identity provider and back) as used. Resolves to whether
 * it was unused. Also removes expired states, because only this operation adds states.
 */
export async function consumeState(
  db: Db,
  {
    state,
    expiresTime,
    nowSeconds,
  }: { readonly state: string; readonly expiresTime: number; readonly nowSeconds: number },
  secrets: Secrets,
): Promise<boolean> {
  await db
    .deleteFrom('used_states')
    .where('hash', 'in', (eb) =>
      eb.selectFrom('used_states').select('hash').where('expires_time', '<=', nowSeconds).limit(MAX_REMOVED),
    )
    .execute()
  const inserted = await db
    .insertInto('used_states')
    .values({ hash: hmacOf(secrets, 'state', state), expires_time: expiresTime })
    .onConflict((conflict) => conflict.column('hash').doNothing())
    .executeTakeFirst()
  return (inserted.numInsertedOrUpdatedRows ?? 0n) > 0n
}

/**
 * Result of `linkIdentity`; `session over`: the session does not belong to the user any more; `taken`:
 * another user has the identity.
 */
type LinkOutcome = 'linked' | 'session over' | 'taken'

/**
 * Links an identity to a user, if the session that requested this still belongs to the user. An identity of
 * another user is left unchanged. Linking it again has no effect.
 */
export async function linkIdentity(
  db: Db,
  {
    identity,
    userId,
    sessionHash,
    nowSeconds,
  }: {
    readonly identity: Identity
    readonly userId: number
    readonly sessionHash: string
    readonly nowSeconds: number
  },
): Promise<LinkOutcome> {
  const session = await liveSession(db, { sessionHash, nowSeconds })
  if (session?.user.id !== userId || session.user.status !== USER_STATUS.enabled) return 'session over'
  await db
    .insertInto('identities')
    .values({ ...identity, user_id: userId, created_time: nowSeconds })
    .onConflict((conflict) => conflict.columns(['issuer', 'subject']).doNothing())
    .execute()
  const owner = await db
    .selectFrom('identities')
    .select('user_id')
    .where('issuer', '=', identity.issuer)
    .where('subject', '=', identity.subject)
    .executeTakeFirstOrThrow()
  if (owner.user_id !== userId) return 'taken'
  await db.updateTable('users').set({ oidc_id: identity.subject }).where('id', '=', userId).execute()
  return 'linked'
}

/** Result of `unlinkIdentity`; `last way` means that the user could no longer sign in without it. */
type UnlinkOutcome = 'unlinked' | 'unknown' | 'last way'

/**
 * Removes an identity from its user, unless the user could no longer sign in without it. Ends all other
 * sessions of the user, because they may have begun with that identity.
 */
export async function unlinkIdentity(
  db: Db,
  {
    identity: { issuer, subject },
    userId,
    remainingSession,
    acceptsPasswords,
  }: {
    readonly identity: Identity
    readonly userId: number
    /** HMAC of the session that stays valid when the user's other sessions are ended. */
    readonly remainingSession: string | undefined
    /** Whether the gateway accepts sign-ins with a password. */
    readonly acceptsPasswords: boolean
  },
): Promise<UnlinkOutcome> {
  const user = await db
    .selectFrom('users')
    .where('id', '=', userId)
    .select(['password_hash', 'access_token_hash'])
    .executeTakeFirstOrThrow()
  const all = await db
    .selectFrom('identities')
    .select(['issuer', 'subject'])
    .where('user_id', '=', userId)
    .orderBy('created_time', 'desc')
    .execute()
  const others = all.filter((one) => one.issuer !== issuer || one.subject !== subject)
  if (others.length === all.length) return 'unknown'
  const has_password = acceptsPasswords && user.password_hash !== null
  if (others.length === 0 && !has_password && user.access_token_hash === null) return 'last way'
  await db
    .deleteFrom('identities')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .where('user_id', '=', userId)
    .execute()
  const present = others[0]?.subject ?? ''
  await db.updateTable('users').set({ oidc_id: present }).where('id', '=', userId).execute()
  await endSessionsOf(db, userId, remainingSession)
  return 'unlinked'
}
