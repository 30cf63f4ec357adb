import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { freePort } from '../../../test/fixtures/port.ts'

const FOLDER = new URL('..', import.meta.url)

test('the examples in the README of the HTTP package run: the client prints what the server sends', async () => {
  const text = readFileSync(new URL('README.md', FOLDER), 'utf8')
  const examples = [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, lines = '']) => lines)
  expect(examples).toHaveLength(2)
  const program = examples.join('').replaceAll('8080', String(await freePort()))
  const child = spawn(process.execPath, ['--input-type=module-typescript', '--eval', program], {
    cwd: fileURLToPath(FOLDER),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const [printed] = await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])
    expect(String(printed)).toBe('hello me\n')
  } finally {
    child.kill()
  }
})
