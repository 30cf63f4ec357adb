import { StoreUnavailable } from '../store-unavailable.ts'

/**
 * Error codes (SQLSTATE), or their first two characters, of problems of the server or the connection, as
 * opposed to problems of the statement.
 */
const SERVER_FAULTS: ReadonlyMap<string, string> = new Map([
  ['08', 'cannot be reached'],
  ['25', 'cannot be written'],
  ['28', 'refuses the user or the password'],
  ['3D', 'is not there'],
  ['42501', 'cannot be written'],
  ['53', 'has no room or no connection left'],
  ['55', 'is held by somebody else'],
  ['57', 'gave up: it is stopping, or took too long'],
  ['58', 'could not be read or written'],
  ['XX', 'is damaged'],
])

/**
 * Error codes (SQLSTATE), or their first two characters, of a server that responds but does not accept
 * writes.
 */
const REFUSED_WRITES: ReadonlySet<string> = new Set(['25', '42501', '53'])

/** Codes of conflicts with other transactions: serialization failure, deadlock, unique violation. */
const CONFLICTS: ReadonlySet<string> = new Set(['40001', '40P01', '23505'])

/** Whether the transaction should be repeated, because it may succeed or fail with a clearer error. */
export function isRetryableConflict(error: unknown): boolean {
  return CONFLICTS.has(codeOf(error))
}

/** Whether a statement timed out while waiting for a lock. */
export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === '55P03'
}

/**
 * Whether the error was sent by a server that keeps running. False if the connection broke or the server is
 * stopping.
 */
export function isErrorOfRunningServer(error: unknown): boolean {
  const kind = codeOf(error).slice(0, 2)
  return kind !== '' && kind !== '08' && kind !== '57' && !(error instanceof Error && 'syscall' in error)
}

/** Converts errors of the server or the connection to `StoreUnavailable`; returns other errors unchanged. */
export function mapDatabaseError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const code = codeOf(error)
  const fault =
    SERVER_FAULTS.get(code) ??
    SERVER_FAULTS.get(code.slice(0, 2)) ??
    (isConnectionError(error) && 'cannot be reached')
  if (!fault) return error
  const refusesWrites = REFUSED_WRITES.has(code) || REFUSED_WRITES.has(code.slice(0, 2))
  return new StoreUnavailable(`the database ${fault}: ${messageOf(error)}`, { cause: error, refusesWrites })
}

// Errors of the driver have no SQLSTATE, but a system error code or none.
function isConnectionError(error: Error): boolean {
  if ('syscall' in error) return true
  return /^(?:Connection terminated|timeout e|Query read timeout|Client has encountered|Client was closed|Cannot use a pool)/.test(
    error.message,
  )
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' && code.length === 5 ? code : ''
}

// If a host name has several addresses, the error is an AggregateError without a message of its own.
function messageOf(error: Error): string {
  return error instanceof AggregateError ? error.errors.map(String).join('; ') : error.message
}
