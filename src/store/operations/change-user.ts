import { sql } from 'kysely'
import type { User } from '../../domain/user.ts'
import { GatewayError } from '../../errors.ts'
import { hashAccessToken, type Secrets } from '../secrets.ts'
import { userFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'

/** Enables or disables a user. Null if there is none of that id, or no longer. */
export async function setUserStatus(
  db: Db,
  { userId, status }: { readonly userId: number; readonly status: User['status'] },
): Promise<User | null> {
  const row = await db
    .updateTable('users')
    .set({ status })
    .where('id', '=', userId)
    .where('deleted_time', 'is', null)
    .returningAll()
    .executeTakeFirst()
  return row ? userFromRow(row) : null
}

/** Gives a user an access token in the place of any other; only its HMAC is kept. Null if there is no such user. */
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
 * Adds `amount` quota units to what a user has, unless that makes more than `most`: then `invalid_request`. Null if there
 * is no such user. Called through `Ledger.topUp` alone, for the balance in memory must move with the row.
 */
export async function topUpUser(
  db: Db,
  { userId, amount, most }: { readonly userId: number; readonly amount: number; readonly most: number },
): Promise<User | null> {
  const row = await db
    .updateTable('users')
    // Bound numbers are doubles; the sum must stay whole.
    .set({ quota: sql<number>`quota + cast(${amount} as bigint)` })
    .where('id', '=', userId)
    .where('deleted_time', 'is', null)
    .returningAll()
    .executeTakeFirst()
  if (!row) return null
  if (row.quota > most) {
    const before = row.quota - amount
    throw new GatewayError(
      'invalid_request',
      `no user may have more than ${most} quota units: this one has ${before}, and ${amount} more are too many`,
    )
  }
  return userFromRow(row)
}
