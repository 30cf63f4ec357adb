import { existsSync, readdirSync, rmSync } from 'node:fs'
import type { TestProject } from 'vitest/node'

/**
 * The maximum number of files of compiled code that runs leave for later ones; above it, most belong to
 * sources that no longer exist.
 */
const MAX_FILES = 20_000

/** Empties the folder of compiled code where it has grown too large, because it may be in memory. */
export default function setUp({ config: { env } }: TestProject): void {
  const folder = env['NODE_COMPILE_CACHE']
  if (folder === undefined || !existsSync(folder)) return
  try {
    if (readdirSync(folder, { recursive: true }).length > MAX_FILES)
      rmSync(folder, { recursive: true, force: true })
  } catch {
    // Another run empties it, or adds files to it, at the same time.
  }
}
