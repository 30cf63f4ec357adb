import type { Field, RecordColumns } from '../domain/records/record.ts'
import { TOKEN } from '../domain/records/token.ts'
import { USER } from '../domain/records/user.ts'

/** Columns of tokens that decide whether a call is admitted, without the balance. */
export const TOKEN_COLUMNS = columnsOf(TOKEN)

/** Columns of users that decide whether a call is admitted, without the balance. */
export const USER_COLUMNS = columnsOf(USER)

/** Columns of tokens whose change ends the leases, the amounts lent to nodes. */
export const LEASE_ENDING_TOKEN_COLUMNS = columnsOf(TOKEN, 'recall')

/** Columns of users whose change ends the leases, the amounts lent to nodes. */
export const LEASE_ENDING_USER_COLUMNS = columnsOf(USER, 'recall')

function columnsOf({ columns }: RecordColumns, only?: Field['admission']): readonly string[] {
  const found = columns.filter(({ admission }) => admission && admission === (only ?? admission))
  return found.map(({ name }) => name)
}
