import { USER_STATUS, type User } from '../../domain/user.ts'
import { hashSession, type Secrets } from '../secrets.ts'
import { userFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'
import { liveUser } from './profile.ts'

/** Most expired sessions that one login removes. */
const MAX_REMOVED = 1_000

/** Session to be created. Times are Unix seconds. */
export interface NewSession {
  readonly userId: number
  /** Plain value of the cookie; only its HMAC is stored. */
  readonly cookieValue: string
  /** Password hash that the login was checked against. */
  readonly passwordHash: string
  /** Hash of the same password that replaces it. */
  readonly newHash?: string | undefined
  readonly createdTime: number
  readonly expiresTime: number
}

/**
 * Creates a session if the user still exists, is enabled and has this password; resolves to whether it did.
 * Also removes expired sessions of all users: the table grows only here, so no other cleanup is needed.
 */
export async function beginSession(db: Db, session: NewSession, secrets: Secrets): Promise<boolean> {
  await removeExpired(db, session.createdTime)
  const user = await liveUser(db, session.userId)
  if (!user || user.status !== USER_STATUS.enabled || user.password_hash !== session.passwordHash)
    return false
  if (session.newHash !== undefined) {
    // The password stays the same: sessions and access tokens do, too.
    await db
      .updateTable('users')
      .set({ password_hash: session.newHash })
      .where('id', '=', session.userId)
      .execute()
  }
  await db
    .insertInto('sessions')
    .values({
      id_hash: hashSession(secrets, session.cookieValue),
      user_id: session.userId,
      created_time: session.createdTime,
      expires_time: session.expiresTime,
    })
    .execute()
  return true
}

/** Finds the user of a session by its HMAC; null if it is unknown or expired, or the user is deleted. */
export async function userBySession(
  db: Db,
  { sessionHash, nowSeconds }: { readonly sessionHash: string; readonly nowSeconds: number },
): Promise<User | null> {
  const session = await db
    .selectFrom('sessions')
    .select('user_id')
    .where('id_hash', '=', sessionHash)
    .where('expires_time', '>', nowSeconds)
    .executeTakeFirst()
  const row = session && (await liveUser(db, session.user_id))
  return row ? userFromRow(row) : null
}

/** Ends a session; resolves to whether there was one. */
export async function endSession(
  db: Db,
  { session }: { readonly session: string },
  secrets: Secrets,
): Promise<boolean> {
  const result = await db
    .deleteFrom('sessions')
    .where('id_hash', '=', hashSession(secrets, session))
    .executeTakeFirst()
  return result.numDeletedRows > 0n
}

/** Ends all sessions of a user. */
export async function endSessionsOf(db: Db, userId: number): Promise<void> {
  await db.deleteFrom('sessions').where('user_id', '=', userId).execute()
}

async function removeExpired(db: Db, nowSeconds: number): Promise<void> {
  await db
    .deleteFrom('sessions')
    .where('id_hash', 'in', (eb) =>
      eb.selectFrom('sessions').select('id_hash').where('expires_time', '<=', nowSeconds).limit(MAX_REMOVED),
    )
    .execute()
}
