import { existsSync, readdirSync, rmSync } from 'node:fs'
import type { TestProject } from 'vitest/node'

/** Files of compiled code that runs leave for later ones; of more, most belong to sources that are gone. */
const MAX_FILES = 20_000

/** Empties the folder of compiled code where it has grown: it may be in memory. */
export default function setUp({ config: { env } }: TestProject): void {
  const folder = env['NODE_COMPILE_CACHE']
  if (folder === undefined || !existsSync(folder)) return
  if (readdirSync(folder, { recursive: true }).length > MAX_FILES)
    rmSync(folder, { recursive: true, force: true })
}
