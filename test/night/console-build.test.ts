import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { build } from 'vite'

const CONFIG = join(import.meta.dirname, '../../console/vite.config.ts')

test('two builds of the console have the same bytes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-built-'))
  try {
    const [one, other] = [await builtInto(join(folder, 'one')), await builtInto(join(folder, 'other'))]
    expect(one.length).toBeGreaterThan(20)
    expect(other).toEqual(one)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

/** The files of a build, each with the hash of its content. */
async function builtInto(outDir: string): Promise<string[]> {
  await build({ configFile: CONFIG, logLevel: 'silent', build: { outDir } })
  return readdirSync(outDir, { recursive: true, encoding: 'utf8' })
    .map((name) => join(outDir, name))
    .filter((path) => statSync(path).isFile())
    .map(
      (path) => `${relative(outDir, path)} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`,
    )
    .toSorted()
}
