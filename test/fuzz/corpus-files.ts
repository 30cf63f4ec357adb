import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = join(import.meta.dirname, 'corpus')
/** Maximum number of files of one target: the corpus is in the repository, and each test run replays it. */
const MAX_FILES = 150

/** Reads the corpus of a target, always in the same order. */
export function readCorpus(target: string): Buffer[] {
  const folder = join(FOLDER, target)
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .toSorted()
    .map((name) => readFileSync(join(folder, name)))
}

/** Replaces the corpus of a target; each file is named by the hash of its content. */
export function writeCorpus(target: string, inputs: readonly Buffer[]): void {
  const folder = join(FOLDER, target)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const input of inputs.slice(0, MAX_FILES)) {
    const name = createHash('sha256').update(input).digest('hex').slice(0, 12)
    writeFileSync(join(folder, name), input)
  }
}
