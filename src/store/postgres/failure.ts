import { StoreUnavailable } from '../store-unavailable.ts'

/** Classes of error codes that speak of the server or the connection, not of the statement. */
const SERVER_FAULTS: ReadonlyMap<string, string> = new Map([
  ['08', 'cannot be reached'],
  ['28', 'refuses the user or the password'],
  ['3D', 'is not there'],
  ['53', 'has no room or no connection left'],
  ['57', 'gave up: it is stopping, or took too long'],
  ['58', 'could not be read or written'],
  ['XX', 'is damaged'],
])

/** Another transaction was in the way: serialization failure, deadlock, or a row that it made first. */
const CONFLICTS: ReadonlySet<string> = new Set(['40001', '40P01', '23505'])

/** Whether the same transaction, run again, sees what stood in its way and can say so or get around it. */
export function isConflict(error: unknown): boolean {
  return CONFLICTS.has(codeOf(error))
}

/** Whether it was given up as another transaction kept a lock for longer than it would wait. */
export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === '55P03'
}

/**
 * Whether the server itself said this, and goes on serving: a connection that broke, or a server that stops,
 * says otherwise.
 */
export function isServing(error: unknown): boolean {
  const kind = codeOf(error).slice(0, 2)
  return kind !== '' && kind !== '08' && kind !== '57' && !(error instanceof Error && 'syscall' in error)
}

/**
 * The error as it may be thrown on: `StoreUnavailable` where the server or the way to it is to blame, else
 * itself.
 */
export function mapDatabaseError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const trouble =
    SERVER_FAULTS.get(codeOf(error).slice(0, 2)) ?? (isConnectionError(error) && 'cannot be reached')
  return trouble
    ? new StoreUnavailable(`the database ${trouble}: ${messageOf(error)}`, { cause: error })
    : error
}

// The client's own errors have no code of five characters: the system's, or none.
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

// Several addresses of one name fail with one error each, and an empty message over them.
function messageOf(error: Error): string {
  return error instanceof AggregateError ? error.errors.map(String).join('; ') : error.message
}
