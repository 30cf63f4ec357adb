import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = join(import.meta.dirname, 'corpus')
/**
 * Inputs that are kept of a target: the corpus is part of the repository, and each is replayed with every
 * test run.
 */
const MAX_FILES = 150

/** The inputs that are kept of a target, always in the same order. */
export function readCorpus(target: string): Buffer[] {
  const folder = join(FOLDER, target)
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .toSorted()
    .map((name) => readFileSync(join(folder, name)))
}

/** Keeps these inputs of a target and no others; a file is named for what is in it. */
export function writeCorpus(target: string, inputs: readonly Buffer[]): void {
  const folder = join(FOLDER, target)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const input of inputs.slice(0, MAX_FILES)) {
    const name = createHash('sha256').update(input).digest('hex').slice(0, 12)
    writeFileSync(join(folder, name), input)
  }
}
