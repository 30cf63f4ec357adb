import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import process from 'node:process'
import { type Browser, chromium } from 'playwright-core'

/** Patience: a start that fails would fail all test files of this process. */
const START_LIMIT_MS = 240_000

let shared: Promise<Browser> | undefined

/**
 * The browser of all test files that this process runs, because a start takes seconds; each stage has contexts of
 * its own. It ends with the process, whose end closes the pipe between them.
 */
export async function sharedBrowser(): Promise<Browser> {
  const running = await shared
  if (running?.isConnected()) return running
  return (shared = launchBrowser())
}

/** Starts a browser, which the caller closes. Pages are gone before it pays to optimize the code of their scripts. */
export function launchBrowser(): Promise<Browser> {
  const args = ['--no-sandbox', '--js-flags=--no-opt --no-maglev']
  return chromium.launch({ executablePath: chromiumPath() ?? 'chromium', args, timeout: START_LIMIT_MS })
}

/**
 * The path of Debian's browser; undefined where it is not installed. Its shell without windows opens a page in half the
 * time.
 */
export function chromiumPath(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  const programs = ['chromium-headless-shell', 'chromium']
  return programs.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable)
}

/** Whether tests in a browser are skipped. Where every test must run, they fail instead. */
export function withoutBrowser(): boolean {
  const isMissing = chromiumPath() === undefined
  if (isMissing && process.env['CI'] === undefined)
    console.warn(
      'left out: tests of the console need Chromium (Debian: apt-get install chromium-headless-shell)',
    )
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
