import { USER_STATUS, type User } from '../../domain/user.ts'
import { hashSession, type Secrets } from '../secrets.ts'
import { userFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'
import { liveUser } from './profile.ts'

/** Expired sessions that one login removes at most. */
const MAX_REMOVED = 1_000

/** A session to be begun. Times are Unix seconds. */
export interface NewSession {
  readonly userId: number
  /** Plain; only its HMAC is kept. */
  readonly cookieValue: string
  /** The password that was looked at. */
  readonly passwordHash: string
  readonly createdTime: number
  readonly expiresTime: number
}

/**
 * Begins a session, if the user is still there, enabled, and has that password; says whether it did. Expired
 * sessions of anybody are removed along the way: the table grows here and nowhere else, so that nothing has
 * to look after it.
 */
export async function beginSession(db: Db, begun: NewSession, secrets: Secrets): Promise<boolean> {
  await removeExpired(db, begun.createdTime)
  const user = await liveUser(db, begun.userId)
  if (!user || user.status !== USER_STATUS.enabled || user.password_hash !== begun.passwordHash) return false
  await db
    .insertInto('sessions')
    .values({
      id_hash: hashSession(secrets, begun.cookieValue),
      user_id: begun.userId,
      created_time: begun.createdTime,
      expires_time: begun.expiresTime,
    })
    .execute()
  return true
}

/** Whose session that is, by its HMAC; null if it is nobody's, or over, or its user is no longer. */
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

/** Ends a session; says whether there was one. */
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
