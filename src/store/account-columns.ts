import type { Field, RecordColumns } from '../domain/records/record.ts'
import { TOKEN } from '../domain/records/token.ts'
import { USER } from '../domain/records/user.ts'

/** Columns of tokens, except the balance, that decide whether a call is admitted. */
export const TOKEN_COLUMNS = columnsOf(TOKEN)

/** Columns of users, except the balance, that decide whether a call is admitted. */
export const USER_COLUMNS = columnsOf(USER)

/** Columns of tokens; when one of them changes, the token's leases (amounts lent to nodes) end. */
export const LEASE_ENDING_TOKEN_COLUMNS = columnsOf(TOKEN, 'recall')

/** Columns of users; when one of them changes, the user's leases (amounts lent to nodes) end. */
export const LEASE_ENDING_USER_COLUMNS = columnsOf(USER, 'recall')

function columnsOf({ columns }: RecordColumns, only?: Field['admission']): readonly string[] {
  const found = columns.filter(({ admission }) => admission && admission === (only ?? admission))
  return found.map(({ name }) => name)
}
