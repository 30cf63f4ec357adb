import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Patch } from '../fixtures/patch.ts'
import { patchedSources } from '../fixtures/patched-copy.ts'

/**
 * The files of the program and of its console that have an error about `what` after the patches, in order. With `include`,
 * only these files and folders are compiled, with what they import.
 */
export async function filesWithErrors(
  patches: readonly Patch[],
  what: string,
  include: readonly string[] = ['src', 'console'],
): Promise<readonly string[]> {
  const copy = patchedSources(patches, ['console', 'tsconfig.json'])
  try {
    const exclude = ['**/*.test.ts', 'console/built']
    const project = join(copy.root, 'tsconfig.copy.json')
    // No import names the declarations of modules that have no types.
    const files = [...include, 'src/*.d.ts']
    writeFileSync(project, JSON.stringify({ extends: './console/tsconfig.json', include: files, exclude }))
    const output = await compile(copy.root, project)
    const errors = output.split(/^(?=\S)/m).filter((error) => error.includes(what))
    return [...new Set(errors.map((error) => error.slice(0, error.indexOf('('))))].toSorted()
  } finally {
    copy.discard()
  }
}

function compile(cwd: string, project: string): Promise<string> {
  return new Promise((resolve) => {
    execFile('npx', ['tsc', '--noEmit', '--pretty', 'false', '--project', project], { cwd }, (_, stdout) =>
      resolve(stdout),
    )
  })
}
