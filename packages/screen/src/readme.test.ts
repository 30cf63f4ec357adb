import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const FOLDER = new URL('..', import.meta.url)

function run(program: string): string {
  return execFileSync(process.execPath, ['--input-type=module-typescript', '--eval', program], {
    cwd: fileURLToPath(FOLDER),
    encoding: 'utf8',
  })
}

test('the examples in the README of the screen package redact a text, and replace and restore values in a stream', () => {
  const text = readFileSync(new URL('README.md', FOLDER), 'utf8')
  const [redact = '', replace = '', ...others] = [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(
    ([, lines = '']) => lines,
  )
  expect(others).toEqual([])
  expect(run(redact)).toBe('Write to [REDACTED].\n')
  expect(run(replace)).toMatch(/^Write to \[\[EMAIL_[0-9a-f]{8}\]\]\.\nWrite to ann@example\.com\.\n$/)
})
