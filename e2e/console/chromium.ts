import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import process from 'node:process'

/** The path of Debian's browser; undefined where it is not installed. */
export function chromiumPath(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return folders.map((folder) => join(folder, 'chromium')).find(isExecutable)
}

/** Whether tests in a browser are skipped. Where every test must run, they fail instead. */
export function withoutBrowser(): boolean {
  const isMissing = chromiumPath() === undefined
  if (isMissing && process.env['CI'] === undefined)
    console.warn('left out: tests of the console need Chromium (Debian: apt-get install chromium)')
  return isMissing && process.env['CI'] === undefined
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
