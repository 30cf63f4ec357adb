import { GatewayError } from '../../errors.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import type { SerializedError } from './messages.ts'
import { sqliteCode, faultOf } from './database-fault.ts'

/** Maps errors of the database as a whole to `StoreUnavailable`; returns others unchanged. */
export function mapDatabaseError(error: unknown): unknown {
  const fault = faultOf(error)
  if (!fault) return error
  const message = `the database ${fault.symptom}: ${fault.remedy}`
  const { lasting, refusesWrites = false } = fault
  return new StoreUnavailable(message, { cause: error, lasting, refusesWrites })
}

/** Like `mapDatabaseError`, for a database that could not be opened: names the file and the remedy. */
export function mapOpeningError(error: unknown, path: string): unknown {
  const cause = error instanceof StoreUnavailable ? error.cause : error
  const fault = faultOf(cause)
  if (!fault) return error
  const message = `the database ${path} ${fault.symptom} (${withCauses(cause)}): ${fault.remedy}`
  return new StoreUnavailable(message, { cause: error, lasting: fault.lasting })
}

/** Serializes an error for another thread. */
export function serializeError(error: unknown): SerializedError {
  if (error instanceof GatewayError) {
    return { kind: 'gateway', code: error.code, message: error.message, retryAfter: error.retryAfter }
  }
  if (error instanceof StoreUnavailable) {
    const cause = error.cause === undefined ? undefined : serializeError(error.cause)
    const { message, lasting, refusesWrites } = error
    return { kind: 'unavailable', message, cause, lasting, refusesWrites }
  }
  return {
    kind: 'other',
    message: withCauses(error),
    stack: error instanceof Error ? (error.stack ?? '') : '',
    sqliteCode: sqliteCode(error),
  }
}

/** Restores an error as an instance of its class. */
export function deserializeError(failure: SerializedError): Error {
  if (failure.kind === 'gateway') {
    const { code, message, retryAfter } = failure
    return new GatewayError(code, message, retryAfter === undefined ? {} : { retryAfter })
  }
  if (failure.kind === 'unavailable') {
    const { message, cause, lasting, refusesWrites } = failure
    const restored = cause && { cause: deserializeError(cause) }
    return new StoreUnavailable(message, { lasting, refusesWrites, ...restored })
  }
  const error = new Error(failure.message)
  error.stack = failure.stack
  return failure.sqliteCode === undefined ? error : Object.assign(error, { sqliteCode: failure.sqliteCode })
}

function withCauses(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause === undefined ? error.message : `${error.message}: ${withCauses(error.cause)}`
}
