/** What a failure of SQLite means where the database as a whole is to blame, not the statement. */
export interface Trouble {
  /** Goes on "the database …". */
  readonly is: string
  /**
   * The database can no longer be relied on; what is written so far is safe, and is found at the next start.
   */
  readonly lasting: boolean
  /** What the operator can do. */
  readonly remedy: string
}

const READ_AND_WRITE =
  'let the user that runs sluice read and write it and its folder, or choose another DATA_DIR'
const MAKE_ROOM = 'make room on its disk; nothing was lost'
const PUT_BACK =
  'keep it aside, put a backup in its place (with no files "-wal" and "-shm" of the old one beside it), and look for ' +
  'errors of the disk'

const NO_ROOM: Trouble = { is: 'has no room left on its disk', lasting: false, remedy: MAKE_ROOM }

/** Extended result codes that mean something else than their primary one. */
const EXTENDED: ReadonlyMap<number, Trouble> = new Map([
  // The log's index could not grow, which is how a full disk may show first.
  [4874, NO_ROOM],
])

const PRIMARY: ReadonlyMap<number, Trouble> = new Map([
  [5, { is: 'is locked by another program', lasting: false, remedy: 'end that program, then start again' }],
  [6, { is: 'is locked by another connection', lasting: false, remedy: 'start again' }],
  [7, { is: 'ran out of memory', lasting: false, remedy: 'give it more memory' }],
  [8, { is: 'is read-only', lasting: true, remedy: READ_AND_WRITE }],
  [9, { is: 'was interrupted', lasting: false, remedy: 'start again' }],
  [10, { is: 'could not be read or written', lasting: true, remedy: 'look for errors of its disk' }],
  [11, { is: 'is damaged', lasting: true, remedy: PUT_BACK }],
  [13, NO_ROOM],
  [14, { is: 'could not be opened', lasting: false, remedy: READ_AND_WRITE }],
  [15, { is: 'is locked by another program', lasting: false, remedy: 'end that program, then start again' }],
  [26, { is: 'is not a database', lasting: true, remedy: PUT_BACK }],
])

/** The system's codes, for what is done to the file without SQLite. */
const SYSTEM: ReadonlyMap<string, Trouble> = new Map([
  ['EACCES', { is: 'may not be opened', lasting: false, remedy: READ_AND_WRITE }],
  ['EPERM', { is: 'may not be opened', lasting: false, remedy: READ_AND_WRITE }],
  ['EROFS', { is: 'is on a disk that is read-only', lasting: false, remedy: READ_AND_WRITE }],
  ['EISDIR', { is: 'is a folder', lasting: false, remedy: 'choose another DATABASE_URL' }],
  // What the system says of a new folder on a read-only disk, too.
  ['ENOENT', { is: 'is not there and cannot be made', lasting: false, remedy: READ_AND_WRITE }],
  ['ENOTDIR', { is: 'is in no folder', lasting: false, remedy: 'choose another DATA_DIR' }],
  ['EEXIST', { is: 'is a file', lasting: false, remedy: 'choose another DATA_DIR' }],
  ['ENOSPC', NO_ROOM],
  ['EDQUOT', NO_ROOM],
  ['EMFILE', { is: 'could not be opened', lasting: false, remedy: 'raise the limit of open files' }],
])

/** What an error says of the database; undefined if it says nothing. */
export function troubleOf(error: unknown): Trouble | undefined {
  const code = sqliteCode(error)
  if (code !== undefined) return EXTENDED.get(code) ?? PRIMARY.get(code & 0xff)
  return error instanceof Error && 'syscall' in error && 'code' in error
    ? SYSTEM.get(String(error.code))
    : undefined
}

/** SQLite's extended result code of an error of the driver's. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error)) return undefined
  return typeof error.errcode === 'number' ? error.errcode : undefined
}
