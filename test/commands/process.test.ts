import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SECRET, sluiceProcess } from '../fixtures/command.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-process-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const run = (args: readonly string[], input?: string) =>
  sluiceProcess(args, { DATA_DIR: join(folder, 'data'), GATEWAY_SECRET: SECRET }, input)

test('sluice commands write their result to standard output, and messages to standard error', async () => {
  const made = await run(['user', 'create', 'ann', '--json'])
  expect([made.code, made.json()]).toEqual([0, expect.objectContaining({ username: 'ann' })])
  expect(made.err).toContain('The database is new')
  const key = await run(['token', 'create', '--user', 'ann', '--name', 'laptop', '--unlimited'])
  expect(key).toMatchObject({ code: 0, out: expect.stringMatching(/^sk-[A-Za-z0-9]{48}\n$/) })
  expect(key.err).toContain('printed once')
  const copy = join(folder, 'copy.db')
  expect(await run(['backup', copy])).toMatchObject({ code: 0 })
  expect(existsSync(copy)).toBe(true)
})

test('sluice user password reads the password from standard input', async () => {
  expect(await run(['user', 'create', 'bob'])).toMatchObject({ code: 0 })
  const set = await run(['user', 'password', 'bob'], 'correct horse battery\n')
  expect(set).toMatchObject({ code: 0, out: expect.stringMatching(/^bob .* has a new password\.\n$/) })
})

test('a refused or unknown sluice command ends with one sentence on standard error and exit code 1', async () => {
  const refused = await run(['user', 'disable', 'nobody'])
  expect(refused).toMatchObject({ code: 1, out: '', err: 'sluice: there is no user "nobody"\n' })
  const misunderstood = await run(['user', 'lisst'])
  expect(misunderstood).toMatchObject({ code: 1, out: '' })
  expect(misunderstood.err).toContain('run it with --help')
})

test('sluice --help prints the help to standard output, with exit code 0', async () => {
  const help = await run(['token', 'create', '--help'])
  expect(help).toMatchObject({ code: 0, err: '' })
  expect(help.out).toContain('Usage: sluice token create')
  expect(help.out.replaceAll(/\s+/g, ' ')).toContain(
    'default ./gateway.yaml if it exists (env: GATEWAY_CONFIG)',
  )
})

test('a sluice command whose output is closed early ends without an error message, with exit code 141', async () => {
  const child = spawn(process.execPath, ['bin/sluice.mjs', '--help'], { stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.destroy()
  let errors = ''
  child.stderr.on('data', (bytes: Buffer) => (errors += bytes.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  // Not 0, because a command may have been in the middle of its work.
  expect([code, errors]).toEqual([141, ''])
})
