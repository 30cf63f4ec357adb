import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { createPrivateFile, giveToFolderOwner, keepPrivate } from './private-file.ts'
import { MIN_SECRET_LENGTH } from './secrets.ts'
import { databaseFaultOf, mapOpeningError } from './sqlite/failure.ts'

/** Maximum milliseconds for which a command waits until other commands release a data folder. */
export const COMMAND_LOCK_TIMEOUT_MS = 60_000
/** Milliseconds between attempts to lock a folder that another process has locked. */
const RETRY_INTERVAL_MS = 50

/** A lock on a data folder. It ends with `release`, or when this process ends in any way. */
export interface DataFolderLock {
  /** A sentence for the operator if other accounts of the machine can enter the folder. */
  readonly warning: string | undefined
  release(): void
}

/** Who locks a data folder: a running gateway, or a short command. */
export type DataFolderHolder = 'gateway' | 'command'

/** Error: another process has locked the data folder, or its database. */
export class DataFolderInUse extends Error {
  /** The folder, or the database. */
  readonly path: string
  readonly holder: DataFolderHolder

  constructor(
    path: string,
    holder: DataFolderHolder,
    cause: unknown,
    what = `the data folder ${path}`,
    gateway = `${processOn(path)}: stop the gateway that runs on it, or choose another DATA_DIR`,
  ) {
    const user = holder === 'gateway' ? gateway : 'another command: try again when that has ended'
    super(`${what} is in use by ${user}`, { cause })
    this.name = 'DataFolderInUse'
    this.path = path
    this.holder = holder
  }
}

/** Error: a process with another data folder has locked the embedded database. */
export class DatabaseInUse extends DataFolderInUse {
  constructor(path: string, holder: DataFolderHolder, cause: unknown) {
    const folder = textOf(`${path}.holder`).trimEnd() || 'another data folder'
    const remedy = 'set DATA_DIR to that folder, or choose another DATABASE_URL'
    super(path, holder, cause, `the database ${path}`, `the gateway on ${folder}: ${remedy}`)
  }
}

/**
 * Creates the folder if it is missing (mode 0700), and locks it, and the embedded database at the path `database`, which
 * other folders may be used with too. The operating system releases the locks when the process dies. Throws
 * `DataFolderInUse` if another process has locked one of them, or a sentence for the operator if other accounts can
 * write to the folder.
 */
export function lockDataFolder(path: string, holder: DataFolderHolder, database?: string): DataFolderLock {
  const folder = withFolderErrors(path, () => {
    makeFolder(path)
    const warning = warningOf(path)
    const lock = lockFile(join(path, 'lock.db'), holder, (by, error) => new DataFolderInUse(path, by, error))
    return { warning, ...noted(lock, holder, fileIn(path), `${process.pid} ${hostname()}`) }
  })
  if (database === undefined) return folder
  try {
    const lock = lockFile(`${database}.lock`, holder, (by, error) => new DatabaseInUse(database, by, error))
    const { release } = noted(lock, holder, `${database}.holder`, path)
    return {
      warning: folder.warning,
      release() {
        release()
        folder.release()
      },
    }
  } catch (error) {
    folder.release()
    throw mapOpeningError(error, database)
  }
}

// Not by `recursive` of `mkdirSync`, which never ends where a folder that exists refuses new ones with ENOENT, as mounts of an
// automounter do.
function makeFolder(path: string): void {
  if (existsSync(path)) return
  makeFolder(dirname(path))
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process may have made it at the same time.
    if (!existsSync(path)) throw error
  }
}

function lockFile(
  file: string,
  holder: DataFolderHolder,
  inUse: (by: DataFolderHolder, cause: unknown) => DataFolderInUse,
): DatabaseSync {
  createPrivateFile(file)
  const lock = new DatabaseSync(file, { timeout: 0 })
  try {
    // Both kinds of SQLite lock exclude other writers. The kind shows who holds the lock: while a command
    // holds it (IMMEDIATE), others can still read.
    lock.exec(holder === 'gateway' ? 'BEGIN EXCLUSIVE' : 'BEGIN IMMEDIATE')
    return lock
  } catch (error) {
    const other = isBusy(error) && inUse(holderOf(lock), error)
    lock.close()
    throw other || error
  }
}

/**
 * A held lock, with a file beside it in which a gateway says who holds it, for the message of a second start. That file is no
 * lock, so one that a killed gateway leaves behind does no harm.
 */
function noted(
  lock: DatabaseSync,
  holder: DataFolderHolder,
  file: string,
  text: string,
): Pick<DataFolderLock, 'release'> {
  if (holder === 'command') return { release: () => lock.close() }
  writeNote(file, text)
  return {
    release() {
      removeNote(file)
      lock.close()
    },
  }
}

/**
 * Like `lockDataFolder`, but waits up to `COMMAND_LOCK_TIMEOUT_MS` for other commands to release the folder and the database.
 * Rejects with `DataFolderInUse` if a gateway has locked one, or if commands have not released them by then.
 */
export async function waitAndLockDataFolder(
  path: string,
  holder: DataFolderHolder,
  database?: string,
): Promise<DataFolderLock> {
  const endMs = performance.now() + COMMAND_LOCK_TIMEOUT_MS
  for (;;) {
    try {
      return lockDataFolder(path, holder, database)
    } catch (error) {
      const mayWait = error instanceof DataFolderInUse && error.holder === 'command'
      if (!mayWait || performance.now() > endMs) throw error
    }
    await delay(RETRY_INTERVAL_MS)
  }
}

/**
 * Reads the gateway secret from the file `secret` of a data folder; creates the file if it is missing. Makes
 * the file readable only by its owner. The folder must be locked.
 */
export function secretOfDataFolder(path: string): string {
  const file = join(path, 'secret')
  return withFolderErrors(path, () => {
    keepPrivate(file)
    if (!existsSync(file)) writeSecret(path, file, randomBytes(32).toString('hex'))
    const secret = readFileSync(file, 'utf8').trim()
    if (secret.length < MIN_SECRET_LENGTH)
      throw new Error(
        `the file ${file} has ${secret.length} characters, too few for a secret: put that of the database back, or remove ` +
          'the file if there is no database yet',
      )
    return secret
  })
}

/**
 * Reads the secret that replaces the one of the file `secret`, from `secret.new`; undefined unless the secret is
 * being changed.
 */
export function newSecretOfDataFolder(path: string): string | undefined {
  const file = join(path, 'secret.new')
  return withFolderErrors(path, () => (existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined))
}

/** Writes `secret.new`, so that a start needs no variable while the secret is changed. The folder must be locked. */
export function writeNewSecret(path: string, secret: string): void {
  withFolderErrors(path, () => writeSecret(path, join(path, 'secret.new'), secret))
}

/**
 * Replaces `secret` by `secret.new`, the last step of a change. Returns the file in which the old one stays, because
 * backups need it; `keyId` is that of the old one. The folder must be locked.
 */
export function replaceSecretOfDataFolder(path: string, keyId: string): string {
  const file = join(path, 'secret')
  const kept = `${file}.old-${keyId}`
  withFolderErrors(path, () => {
    // A copy, because `secret` must be there at each moment, and not every disk has hard links.
    writeSecret(path, kept, readFileSync(file, 'utf8').trim())
    renameSync(join(path, 'secret.new'), file)
    syncFolder(path)
  })
  return kept
}

/**
 * Throws if other accounts can write to the folder, because they could replace the database or the secret.
 * Write access for a group of this process is allowed, because container volumes have it. Returns a warning
 * if others can enter the folder.
 */
function warningOf(path: string): string | undefined {
  const ownGroups = process.getgroups?.()
  if (!ownGroups) return undefined
  const { mode, gid } = statSync(path)
  const isSharedWithGroup = (mode & 0o020) !== 0 && gid !== process.getegid?.() && !ownGroups.includes(gid)
  if ((mode & 0o002) !== 0 || isSharedWithGroup)
    throw new Error(
      `other accounts of this machine may write to the data folder ${path}: keep them out (chmod 700 ${path})`,
    )
  return (mode & 0o077) === 0
    ? undefined
    : `other accounts of this machine may enter the data folder ${path}: chmod 700 keeps them out`
}

/** Turns file system errors into a sentence for the operator. */
function withFolderErrors<Result>(path: string, run: () => Result): Result {
  try {
    return run()
  } catch (error) {
    const fault = databaseFaultOf(error)
    if (!fault || !(error instanceof Error)) throw error
    throw new Error(`the data folder ${path} ${fault.symptom} (${error.message}): ${fault.remedy}`, {
      cause: error,
    })
  }
}

// The secret is written to a temporary file first, so that a crash cannot leave a part of it in the final
// file.
function writeSecret(folder: string, file: string, secret: string): void {
  const unfinished = `${file}.unfinished`
  // An unfinished file was left behind by an interrupted start, or placed there by an attacker.
  rmSync(unfinished, { force: true })
  const descriptor = openSync(unfinished, 'wx', 0o600)
  giveToFolderOwner(unfinished)
  writeSync(descriptor, `${secret}\n`)
  fsyncSync(descriptor)
  closeSync(descriptor)
  renameSync(unfinished, file)
  syncFolder(folder)
}

function syncFolder(folder: string): void {
  const directory = openSync(folder, 'r')
  fsyncSync(directory)
  closeSync(directory)
}

function holderOf(lock: DatabaseSync): DataFolderHolder {
  try {
    lock.exec('SELECT 1 FROM sqlite_schema')
    return 'command'
  } catch (error) {
    if (isBusy(error)) return 'gateway'
    throw error
  }
}

function isBusy(error: unknown): boolean {
  const SQLITE_BUSY = 5
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
}

/** File with the process id and host of the gateway that uses a data folder. */
const fileIn = (folder: string): string => join(folder, 'lock.pid')

function writeNote(file: string, text: string): void {
  removeNote(file)
  try {
    writeFileSync(file, `${text}\n`, { mode: 0o600, flag: 'wx' })
  } catch {
    // A full disk must not prevent the start. Without this file, the error message of a second start says
    // "another process".
  }
}

/** Removes the file of a lock that this process still holds. */
function removeNote(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch {
    // A file that stays behind does no harm, because it is not a lock.
  }
}

/** Describes the process that has locked a data folder. */
function processOn(folder: string): string {
  const [, id, host] = /^(\d+) (\S+)\n$/.exec(textOf(fileIn(folder))) ?? []
  if (id === undefined) return 'another process'
  if (host !== hostname()) return `process ${id} on ${host}`
  return runs(Number(id)) ? `process ${id}` : 'another process'
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

// Whether a process with this id runs. The id may still be that of a killed gateway, if the present one has
// not written its own yet.
function runs(id: number): boolean {
  try {
    return process.kill(id, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
