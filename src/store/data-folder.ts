import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { faultOf } from './sqlite/database-fault.ts'

/** Longest wait for other commands to release a data folder. */
export const COMMAND_LOCK_TIMEOUT_MS = 60_000
/** Interval between attempts to lock a held folder. */
const RETRY_INTERVAL_MS = 50

/** Lock on a data folder, held until `release` or until this process ends in any way. */
export interface DataFolderLock {
  release(): void
}

/** Purpose of a lock: a gateway that runs on the folder, or a short command. */
export type DataFolderHolder = 'gateway' | 'command'

/** Error: another process holds the data folder. */
export class DataFolderInUse extends Error {
  readonly holder: DataFolderHolder

  constructor(path: string, holder: DataFolderHolder, options: { cause?: unknown } = {}) {
    super(
      holder === 'gateway'
        ? `the data folder ${path} is in use by another process: stop the gateway that runs on it, or choose another DATA_DIR`
        : `the data folder ${path} is in use by another command: try again when that has ended`,
      options,
    )
    this.name = 'DataFolderInUse'
    this.holder = holder
  }
}

/**
 * Creates the folder if it is missing (mode 0700), and locks it. The operating system releases the lock when
 * the process dies. Throws `DataFolderInUse` if another process holds it.
 */
export function lockDataFolder(path: string, holder: DataFolderHolder): DataFolderLock {
  return withFolderErrors(path, () => {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    const lock = new DatabaseSync(join(path, 'lock.db'), { timeout: 0 })
    try {
      // Both locks of SQLite exclude other writers, and they tell the holders apart: under a command's
      // (IMMEDIATE), reads still succeed.
      lock.exec(holder === 'gateway' ? 'BEGIN EXCLUSIVE' : 'BEGIN IMMEDIATE')
    } catch (error) {
      const inUse = isBusy(error) && new DataFolderInUse(path, holderOf(lock), { cause: error })
      lock.close()
      throw inUse || error
    }
    return { release: () => lock.close() }
  })
}

/**
 * Like `lockDataFolder`, but waits while commands hold the folder, at most `COMMAND_LOCK_TIMEOUT_MS`. Rejects
 * with `DataFolderInUse` if a gateway holds it, or commands still do.
 */
export async function lockDataFolderInTurn(path: string, holder: DataFolderHolder): Promise<DataFolderLock> {
  const endMs = performance.now() + COMMAND_LOCK_TIMEOUT_MS
  for (;;) {
    try {
      return lockDataFolder(path, holder)
    } catch (error) {
      const mayWait = error instanceof DataFolderInUse && error.holder === 'command'
      if (!mayWait || performance.now() > endMs) throw error
    }
    await delay(RETRY_INTERVAL_MS)
  }
}

/**
 * Reads the secret in the file `secret` of a data folder; creates the file if it is missing, readable by its
 * owner alone. The folder must be locked.
 */
export function secretOfDataFolder(path: string): string {
  const file = join(path, 'secret')
  return withFolderErrors(path, () => {
    if (!existsSync(file)) makeSecret(path, file)
    return readFileSync(file, 'utf8').trim()
  })
}

/** Turns file system errors into a sentence for the operator. */
function withFolderErrors<Result>(path: string, run: () => Result): Result {
  try {
    return run()
  } catch (error) {
    const fault = faultOf(error)
    if (!fault || !(error instanceof Error)) throw error
    throw new Error(`the data folder ${path} ${fault.symptom} (${error.message}): ${fault.remedy}`, {
      cause: error,
    })
  }
}

// Written to a temporary file first: a truncated secret could not decrypt what is stored with it.
function makeSecret(folder: string, file: string): void {
  const unfinished = `${file}.unfinished`
  const descriptor = openSync(unfinished, 'w', 0o600)
  writeSync(descriptor, `${randomBytes(32).toString('hex')}\n`)
  fsyncSync(descriptor)
  closeSync(descriptor)
  renameSync(unfinished, file)
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
