import type { Db } from './operations/operation.ts'
import { TOKEN, type Token, type TokenRow } from '../domain/records/token.ts'
import { formatOperatorLimits } from '../domain/usage-limits.ts'
import { usageLimitsFromRow } from './usage-limit-columns.ts'
import {
  CALLING_USER_RECORD,
  type ManagedUser,
  USER,
  type User,
  type UserRow,
} from '../domain/records/user.ts'
import type { UsageLimitColumns } from '../domain/records/usage-limits.ts'

/** Selects users that are not deleted. */
export function undeletedUsers(db: Db) {
  return db.selectFrom('users').where('deleted_time', 'is', null)
}

/** Selects tokens that are not deleted. */
export function undeletedTokens(db: Db) {
  return db.selectFrom('tokens').where('deleted_time', 'is', null)
}

/** Selects the tokens of a user that are not deleted. */
export function undeletedTokensOfUser(db: Db, userId: number) {
  return undeletedTokens(db).where('user_id', '=', userId)
}

/**
 * The columns of a token that is deleted. Its row stays, so its long texts are removed: otherwise keys that are made and
 * deleted would fill the disk. Its guards stay for lines of batches that its calls have sent already, and its encrypted
 * key for a change of the gateway secret, after which the key must still be known as deleted.
 */
export function columnsOfDeletedToken(nowSeconds: number) {
  return {
    deleted_time: nowSeconds,
    model_limits: TOKEN.defaults.model_limits,
    allow_ips: TOKEN.defaults.allow_ips,
    vendor_routes: TOKEN.defaults.vendor_routes,
    operator_terms: formatOperatorLimits(TOKEN.defaults.operator_terms),
  }
}

/** Converts a row to a token without its key. */
export function tokenFromRow(
  row: Omit<TokenRow, 'key_hash' | 'key_cipher' | 'key_digest' | 'key_end'>,
): Token {
  return { ...TOKEN.fromRow(row), ...usageLimitsFromRow(row) }
}

/** Converts a user's row to the facts that calls and charges need. */
export function userFromRow(
  row: Parameters<typeof CALLING_USER_RECORD.fromRow>[0] & UsageLimitColumns,
): User {
  return { ...CALLING_USER_RECORD.fromRow(row), ...usageLimitsFromRow(row) }
}

/** Converts a user's row to the facts that administrators may see. */
export function managedUserFromRow(row: UserRow): ManagedUser {
  return { ...USER.fromRow(row), ...usageLimitsFromRow(row), has_password: row.password_hash !== null }
}
