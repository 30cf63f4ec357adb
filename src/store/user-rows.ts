import { CALLING_USER, type ManagedUser, USER, type User, type UserRow } from '../domain/records/user.ts'
import type { TermColumns } from '../domain/records/terms.ts'
import { termsFromRow } from './term-columns.ts'

/** Converts the columns of a user that calls and charges need. */
export function userFromRow(row: Parameters<typeof CALLING_USER.fromRow>[0] & TermColumns): User {
  return { ...CALLING_USER.fromRow(row), ...termsFromRow(row) }
}

/** Converts the columns of a user that administrators may see. */
export function managedUserFromRow(row: UserRow): ManagedUser {
  return { ...USER.fromRow(row), ...termsFromRow(row), has_password: row.password_hash !== null }
}
