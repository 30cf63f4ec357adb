import { columnsWith } from '../domain/records/record.ts'
import { TOKEN } from '../domain/records/token.ts'
import { USER } from '../domain/records/user.ts'

/** Columns of tokens that the admission of calls depends on, without the balance. */
export const TOKEN_COLUMNS: readonly string[] = columnsWith(TOKEN, 'admission')

/** Columns of users that the admission of calls depends on, without the balance. */
export const USER_COLUMNS: readonly string[] = columnsWith(USER, 'admission')

/** Columns of tokens whose changes recall the leases. */
export const RECALLING_TOKEN_COLUMNS: readonly string[] = columnsWith(TOKEN, 'admission', 'recall')

/** Columns of users whose changes recall the leases. */
export const RECALLING_USER_COLUMNS: readonly string[] = columnsWith(USER, 'admission', 'recall')
