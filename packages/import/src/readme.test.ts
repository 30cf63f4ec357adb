import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { familyDatabase } from '../../../test/stores/family-database.ts'

const REPOSITORY = fileURLToPath(new URL('../../..', import.meta.url))

test('the example in the README of the import package lists the users of a database', async () => {
  const family = await familyDatabase('new-api', 'SQLite')
  await family.insert('users', { id: 1, username: 'ann', password: '' })
  const text = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const [example = '', ...others] = [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, lines = '']) => lines)
  expect(others).toEqual([])
  const folder = mkdtempSync(join(tmpdir(), 'readme-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  symlinkSync(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'))
  symlinkSync(family.place, join(folder, 'one-api.db'))
  const printed = execFileSync(process.execPath, ['--input-type=module-typescript', '--eval', example], {
    cwd: folder,
    encoding: 'utf8',
  })
  expect(printed).toBe("new-api [ 'ann' ]\n")
})
