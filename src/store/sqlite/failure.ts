import { GatewayError } from '../../errors.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import type { ErrorForm } from '../../ipc/error-form.ts'
import type { SerializedError } from './messages.ts'

/** Converts errors that concern the whole database to `StoreUnavailable`; returns other errors unchanged. */
export function mapDatabaseError(error: unknown): unknown {
  const fault = databaseFaultOf(error)
  if (!fault) return error
  const message = `the database ${fault.symptom}: ${fault.remedy}`
  const { lasting, refusesWrites = false } = fault
  return new StoreUnavailable(message, { cause: error, lasting, refusesWrites })
}

/**
 * Converts an error to `StoreUnavailable` if the database could not be opened. The message names the file,
 * the cause and the remedy.
 */
export function mapOpeningError(error: unknown, path: string): unknown {
  const cause = error instanceof StoreUnavailable ? error.cause : error
  const fault = databaseFaultOf(cause)
  if (!fault) return error
  const message = `the database ${path} ${fault.symptom} (${withCauses(cause)}): ${fault.remedy}`
  return new StoreUnavailable(message, { cause: error, lasting: fault.lasting })
}

/** Converts an error to an object that can be posted to another thread. */
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

/** Converts a serialized error back to an instance of its class. */
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

/** Errors of a database's thread keep their class and code. */
export const DATABASE_ERRORS: ErrorForm = {
  pack: serializeError,
  unpack: (packed) => deserializeError(packed as SerializedError),
}

function withCauses(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause === undefined ? error.message : `${error.message}: ${withCauses(error.cause)}`
}

/** A problem of the whole database, as opposed to an error of one statement. */
interface DatabaseFault {
  /**
   * The problem in words that continue a sentence after "the database", such as "has no room left on its
   * disk".
   */
  readonly symptom: string
  /** Whether the database has failed permanently. Committed data is safe, and recovered at the next start. */
  readonly lasting: boolean
  /** Whether the database can be read but not written. */
  readonly refusesWrites?: boolean
  /** What the operator can do about it. */
  readonly remedy: string
}

const GRANT_ACCESS =
  'let the user that runs sluice read and write it and its folder, or choose another DATA_DIR'
const MAKE_ROOM = 'make room on its disk; nothing was lost'
const RESTORE_BACKUP =
  'keep it aside, put a backup in its place (with no files "-wal" and "-shm" of the old one beside it), and look for ' +
  'errors of the disk'

const NO_ROOM: DatabaseFault = {
  symptom: 'has no room left on its disk',
  lasting: false,
  refusesWrites: true,
  remedy: MAKE_ROOM,
}

/** Problems by SQLite's extended result code, where it says more than the primary code. */
const EXTENDED_CODES: ReadonlyMap<number, DatabaseFault> = new Map([
  // SQLITE_IOERR_SHMSIZE: the index of the WAL could not grow, often the first sign of a full disk.
  [4874, NO_ROOM],
])

/** Problems by SQLite's primary result code. */
const PRIMARY_CODES: ReadonlyMap<number, DatabaseFault> = new Map([
  [
    5,
    { symptom: 'is locked by another program', lasting: false, remedy: 'end that program, then start again' },
  ],
  [6, { symptom: 'is locked by another connection', lasting: false, remedy: 'start again' }],
  [7, { symptom: 'ran out of memory', lasting: false, remedy: 'give it more memory' }],
  [8, { symptom: 'is read-only', lasting: true, refusesWrites: true, remedy: GRANT_ACCESS }],
  [9, { symptom: 'was interrupted', lasting: false, remedy: 'start again' }],
  [10, { symptom: 'could not be read or written', lasting: true, remedy: 'look for errors of its disk' }],
  [11, { symptom: 'is damaged', lasting: true, remedy: RESTORE_BACKUP }],
  [13, NO_ROOM],
  [14, { symptom: 'could not be opened', lasting: false, remedy: GRANT_ACCESS }],
  [
    15,
    { symptom: 'is locked by another program', lasting: false, remedy: 'end that program, then start again' },
  ],
  [26, { symptom: 'is not a database', lasting: true, remedy: RESTORE_BACKUP }],
])

/** Problems by system error code, from file operations outside of SQLite. */
const SYSTEM_CODES: ReadonlyMap<string, DatabaseFault> = new Map([
  ['EACCES', { symptom: 'may not be opened', lasting: false, remedy: GRANT_ACCESS }],
  ['EPERM', { symptom: 'may not be opened', lasting: false, remedy: GRANT_ACCESS }],
  ['EROFS', { symptom: 'is on a disk that is read-only', lasting: false, remedy: GRANT_ACCESS }],
  ['EISDIR', { symptom: 'is a folder', lasting: false, remedy: 'choose another DATABASE_URL' }],
  // Creating a folder on a read-only disk also fails with ENOENT.
  ['ENOENT', { symptom: 'is not there and cannot be made', lasting: false, remedy: GRANT_ACCESS }],
  ['ENOTDIR', { symptom: 'is in no folder', lasting: false, remedy: 'choose another DATA_DIR' }],
  ['EEXIST', { symptom: 'is a file', lasting: false, remedy: 'choose another DATA_DIR' }],
  ['ENOSPC', NO_ROOM],
  ['EDQUOT', NO_ROOM],
  ['EMFILE', { symptom: 'could not be opened', lasting: false, remedy: 'raise the limit of open files' }],
])

/**
 * Returns the problem of the whole database that an error means; undefined if the error concerns only one
 * statement.
 */
export function databaseFaultOf(error: unknown): DatabaseFault | undefined {
  const code = sqliteCode(error)
  if (code !== undefined) return EXTENDED_CODES.get(code) ?? PRIMARY_CODES.get(code & 0xff)
  return error instanceof Error && 'syscall' in error && 'code' in error
    ? SYSTEM_CODES.get(String(error.code))
    : undefined
}

/** Returns SQLite's extended result code from an error of the driver; undefined for any other error. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error)) return undefined
  return typeof error.errcode === 'number' ? error.errcode : undefined
}
