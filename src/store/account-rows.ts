import type { Db } from './operations/operation.ts'
import { TOKEN, type Token, type TokenRow } from '../domain/records/token.ts'
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
