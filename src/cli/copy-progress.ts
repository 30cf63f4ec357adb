import { readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Progress } from './progress.ts'

/** Interval at which the copy is measured. */
const INTERVAL_MS = 250
const MEBIBYTE = 2 ** 20

/**
 * Shows how much of a database has been copied, in MiB. The gateway that copies it may be another process.
 */
export function watchCopy(progress: Progress, database: string, copy: string): Disposable {
  const total = sizeOf(database)
  const timer = setInterval(() => {
    const copied = Math.min(total, unfinishedBytes(copy))
    progress.show(Math.floor(copied / MEBIBYTE), Math.floor(total / MEBIBYTE))
  }, INTERVAL_MS).unref()
  return {
    [Symbol.dispose]() {
      clearInterval(timer)
      progress.end()
    },
  }
}

/** Size of the unfinished copy, which has a different name than the finished one; 0 if there is none. */
export function unfinishedBytes(copy: string): number {
  const start = `${basename(copy)}.`
  try {
    const names = readdirSync(dirname(copy))
    const found = names.find((name) => name.startsWith(start) && name.endsWith('.unfinished'))
    return found === undefined ? 0 : sizeOf(join(dirname(copy), found))
  } catch {
    return 0
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
