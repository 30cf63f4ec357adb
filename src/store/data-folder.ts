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

/** How long commands that follow one another may keep a data folder before the next one gives up. */
export const COMMAND_LOCK_TIMEOUT_MS = 60_000
/** How often a held folder is tried again. */
const RETRY_INTERVAL_MS = 50

/** A data folder that is ours until `release`, or until this process ends in whatever way. */
export interface DataFolderLock {
  release(): void
}

/** What a data folder is locked for: a gateway that runs on it, or a command that is soon done with it. */
export type DataFolderHolder = 'gateway' | 'command'

/** Another process holds the data folder. */
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
 * Makes the folder if it is not there (for its owner alone), and locks it. The lock is one that the system
 * takes back when the process dies, so that none is left behind. Throws `DataFolderInUse` if another process
 * holds it.
 */
export function lockDataFolder(path: string, holder: DataFolderHolder): DataFolderLock {
  return withFolderErrors(path, () => {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    const lock = new DatabaseSync(join(path, 'lock.db'), { timeout: 0 })
    try {
      // SQLite's two locks for writers keep each other out, and tell the holder: under a command's, others
      // may still read.
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
 * The same, but waits its turn for as long as commands hold the folder, at most `COMMANDS_TAKE_MS`. Rejects
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
 * The secret of a data folder: what the file `secret` in it holds, which is made at the first call. Only its
 * owner may read the file. The folder must be locked.
 */
export function secretOfDataFolder(path: string): string {
  const file = join(path, 'secret')
  return withFolderErrors(path, () => {
    if (!existsSync(file)) makeSecret(path, file)
    return readFileSync(file, 'utf8').trim()
  })
}

/** Runs what may fail for reasons of the folder, and says them in a sentence for the operator. */
function withFolderErrors<Result>(path: string, run: () => Result): Result {
  try {
    return run()
  } catch (error) {
    const trouble = faultOf(error)
    if (!trouble || !(error instanceof Error)) throw error
    throw new Error(`the data folder ${path} ${trouble.symptom} (${error.message}): ${trouble.remedy}`, {
      cause: error,
    })
  }
}

// Under another name until it is whole and on the disk: a half-written secret would lock its owner out.
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
