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
import { troubleOf } from './sqlite/trouble.ts'

/** A data folder that is ours until `release`, or until this process ends in whatever way. */
export interface DataFolderLock {
  release(): void
}

/** Another process holds the data folder. */
export class DataFolderInUse extends Error {
  constructor(path: string, options: { cause?: unknown } = {}) {
    super(
      `the data folder ${path} is in use by another process: stop the gateway that runs on it, or choose another DATA_DIR`,
      options,
    )
    this.name = 'DataFolderInUse'
  }
}

/**
 * Makes the folder if it is not there (for its owner alone), and locks it. The lock is one that the system takes back when
 * the process dies, so that none is left behind. Throws `DataFolderInUse` if another process holds it.
 */
export function lockDataFolder(path: string): DataFolderLock {
  return toldOf(path, () => {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    const lock = new DatabaseSync(join(path, 'lock.db'), { timeout: 0 })
    try {
      lock.exec('BEGIN EXCLUSIVE')
    } catch (error) {
      lock.close()
      if (!isBusy(error)) throw error
      throw new DataFolderInUse(path, { cause: error })
    }
    return { release: () => lock.close() }
  })
}

/**
 * The secret of a data folder: what the file `secret` in it holds, which is made at the first call. Only its owner may read
 * the file. The folder must be locked.
 */
export function secretOfDataFolder(path: string): string {
  const file = join(path, 'secret')
  return toldOf(path, () => {
    if (!existsSync(file)) makeSecret(path, file)
    return readFileSync(file, 'utf8').trim()
  })
}

/** Runs what may fail for reasons of the folder, and says them in a sentence for the operator. */
function toldOf<Result>(path: string, run: () => Result): Result {
  try {
    return run()
  } catch (error) {
    const trouble = troubleOf(error)
    if (!trouble || !(error instanceof Error)) throw error
    throw new Error(`the data folder ${path} ${trouble.is} (${error.message}): ${trouble.remedy}`, {
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

function isBusy(error: unknown): boolean {
  const SQLITE_BUSY = 5
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
}
