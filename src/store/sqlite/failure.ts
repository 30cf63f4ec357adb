import { GatewayError } from '../../errors.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import type { SerializedError } from './messages.ts'
import { sqliteCode, faultOf } from './database-fault.ts'

/** The error as it may be thrown on: `StoreUnavailable` where the database is to blame, else itself. */
export function mapDatabaseError(error: unknown): unknown {
  const trouble = faultOf(error)
  if (!trouble) return error
  const told = `the database ${trouble.symptom}: ${trouble.remedy}`
  return new StoreUnavailable(told, { cause: error, lasting: trouble.lasting })
}

/** The same for a database that could not be opened: a sentence that names the file, and says what to do. */
export function mapOpeningError(error: unknown, path: string): unknown {
  const cause = error instanceof StoreUnavailable ? error.cause : error
  const trouble = faultOf(cause)
  if (!trouble) return error
  const told = `the database ${path} ${trouble.symptom} (${withCauses(cause)}): ${trouble.remedy}`
  return new StoreUnavailable(told, { cause: error, lasting: trouble.lasting })
}

/** Takes an error apart, to be sent to another thread. */
export function serializeError(error: unknown): SerializedError {
  if (error instanceof GatewayError) {
    return { kind: 'gateway', code: error.code, message: error.message, retryAfter: error.retryAfter }
  }
  if (error instanceof StoreUnavailable) {
    const cause = error.cause === undefined ? undefined : serializeError(error.cause)
    return { kind: 'unavailable', message: error.message, cause, lasting: error.lasting }
  }
  return {
    kind: 'other',
    message: withCauses(error),
    stack: error instanceof Error ? (error.stack ?? '') : '',
    sqliteCode: sqliteCode(error),
  }
}

/** The error again, as an instance of its class. */
export function deserializeError(failure: SerializedError): Error {
  if (failure.kind === 'gateway') {
    const { code, message, retryAfter } = failure
    return new GatewayError(code, message, retryAfter === undefined ? {} : { retryAfter })
  }
  if (failure.kind === 'unavailable') {
    const { message, cause, lasting } = failure
    return new StoreUnavailable(message, { lasting, ...(cause && { cause: deserializeError(cause) }) })
  }
  const error = new Error(failure.message)
  error.stack = failure.stack
  return failure.sqliteCode === undefined ? error : Object.assign(error, { sqliteCode: failure.sqliteCode })
}

function withCauses(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause === undefined ? error.message : `${error.message}: ${withCauses(error.cause)}`
}
