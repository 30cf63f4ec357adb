import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Patch, patchedTexts } from './patch.ts'
import { writeProgram } from './program-bundle.ts'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))

/** A gateway, or a part of one, that was broken on purpose, to see whether a test notices. */
export interface PatchedCopy {
  readonly root: string
  discard(): void
}

/** A copy of the sources with patches, for tests of parts of them; `others` are further files and folders. */
export function patchedSources(patches: readonly Patch[], others: readonly string[] = []): PatchedCopy {
  const copy = newFolder()
  for (const path of ['src', 'packages', 'package.json', ...others])
    cpSync(join(REPOSITORY, path), join(copy.root, path), { recursive: true })
  symlinkSync(join(REPOSITORY, 'node_modules'), join(copy.root, 'node_modules'))
  for (const [file, text] of patchedTexts(patches)) writeFileSync(join(copy.root, file), text)
  return copy
}

/** A patched program that can be started as a gateway. */
export async function patchedProgram(patches: readonly Patch[]): Promise<PatchedCopy> {
  const sources = patches.length === 0 ? undefined : patchedSources(patches)
  const copy = newFolder()
  try {
    await writeProgram(copy.root, 'linked', sources?.root)
  } catch (error) {
    copy.discard()
    throw error
  } finally {
    sources?.discard()
  }
  return copy
}

function newFolder(): PatchedCopy {
  const root = mkdtempSync(join(tmpdir(), 'sluice-mutant-'))
  return { root, discard: () => rmSync(root, { recursive: true, force: true }) }
}
