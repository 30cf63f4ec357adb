import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { bundle, type Packages } from '../../tools/bundle.mjs'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
/** Timeout of the bundler: a test file's top-level await has no other. */
const MAX_BUNDLING_MS = 240_000

/** Writes the program into `root`, in the layout of the package, from the sources of a folder. */
export async function writeProgram(root: string, packages: Packages, sources = REPOSITORY): Promise<void> {
  mkdirSync(root, { recursive: true })
  for (const part of ['bin', 'package.json'])
    cpSync(join(REPOSITORY, part), join(root, part), { recursive: true })
  symlinkSync(join(REPOSITORY, 'node_modules'), join(root, 'node_modules'))
  const timer = new AbortController()
  const late = sleep(MAX_BUNDLING_MS, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`the bundler has not ended in ${MAX_BUNDLING_MS / 1000} s`)
  })
  try {
    await Promise.race([bundle(root, packages, sources), late])
  } finally {
    late.catch(() => {})
    timer.abort()
  }
}
