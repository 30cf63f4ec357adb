import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))

/** A replacement of text in one source file. */
export interface Patch {
  readonly file: string
  /** The text to replace, which must occur exactly once. */
  readonly text: string
  readonly by: string
}

/** The patched files: their texts by their path in the repository. Throws if a patch does not apply. */
export function patchedTexts(patches: readonly Patch[]): ReadonlyMap<string, string> {
  const texts = new Map<string, string>()
  for (const { file, text, by } of patches) {
    const parts = (texts.get(file) ?? readFileSync(join(REPOSITORY, file), 'utf8')).split(text)
    if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} places that read:\n${text}`)
    texts.set(file, parts.join(by))
  }
  return texts
}
