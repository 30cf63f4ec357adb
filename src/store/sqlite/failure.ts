import { GatewayError } from '../../errors.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import type { Failure } from './messages.ts'

/** SQLite's primary result codes that speak of the database as a whole, not of the statement. */
const DATABASE_TROUBLE: ReadonlyMap<number, string> = new Map([
  [5, 'is locked by another program'],
  [6, 'is locked by another connection'],
  [7, 'ran out of memory'],
  [8, 'is read-only'],
  [9, 'was interrupted'],
  [10, 'could not be read or written'],
  [11, 'is damaged'],
  [13, 'has no room left'],
  [14, 'could not be opened'],
  [15, 'is locked by another program'],
  [26, 'is not a database'],
])

/** The error as it may be thrown on: `StoreUnavailable` where the database is to blame, else itself. */
export function blamed(error: unknown): unknown {
  const code = sqliteCode(error)
  const trouble = code === undefined ? undefined : DATABASE_TROUBLE.get(code & 0xff)
  return trouble === undefined ? error : new StoreUnavailable(`the database ${trouble}`, { cause: error })
}

/** Takes an error apart, to be sent to another thread. */
export function takeApart(error: unknown): Failure {
  if (error instanceof GatewayError) {
    return { kind: 'gateway', code: error.code, message: error.message, retryAfter: error.retryAfter }
  }
  if (error instanceof StoreUnavailable) {
    const cause = error.cause === undefined ? undefined : takeApart(error.cause)
    return { kind: 'unavailable', message: error.message, cause }
  }
  return {
    kind: 'other',
    message: withCauses(error),
    stack: error instanceof Error ? (error.stack ?? '') : '',
    sqliteCode: sqliteCode(error),
  }
}

/** The error again, as an instance of its class. */
export function putTogether(failure: Failure): Error {
  if (failure.kind === 'gateway') {
    const { code, message, retryAfter } = failure
    return new GatewayError(code, message, retryAfter === undefined ? {} : { retryAfter })
  }
  if (failure.kind === 'unavailable') {
    const { message, cause } = failure
    return new StoreUnavailable(message, cause === undefined ? {} : { cause: putTogether(cause) })
  }
  const error = new Error(failure.message)
  error.stack = failure.stack
  return failure.sqliteCode === undefined ? error : Object.assign(error, { sqliteCode: failure.sqliteCode })
}

function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error)) return undefined
  return typeof error.errcode === 'number' ? error.errcode : undefined
}

function withCauses(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause === undefined ? error.message : `${error.message}: ${withCauses(error.cause)}`
}
