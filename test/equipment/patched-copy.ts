import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))

/** A text to be replaced in one file of the sources. */
export interface Patch {
  readonly file: string
  /** The text to replace, which must occur exactly once. */
  readonly text: string
  readonly by: string
}

/** A copy of the program with patches: a broken gateway, to see whether a test notices. */
export function patchedCopy(patches: readonly Patch[]): { readonly root: string; discard(): void } {
  const root = mkdtempSync(join(tmpdir(), 'sluice-mutant-'))
  for (const part of ['bin', 'src', 'package.json'])
    cpSync(join(REPOSITORY, part), join(root, part), { recursive: true })
  symlinkSync(join(REPOSITORY, 'node_modules'), join(root, 'node_modules'))
  for (const { file, text, by } of patches) {
    const path = join(root, file)
    const source = readFileSync(path, 'utf8')
    const parts = source.split(text)
    if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} places that read:\n${text}`)
    writeFileSync(path, parts.join(by))
  }
  return { root, discard: () => rmSync(root, { recursive: true, force: true }) }
}
