import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { expect, onTestFinished, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { ROOT, token, user } from '../fixtures/configuration.ts'
import { eventually, type Program, readyProgram } from './program.ts'

const FAILED = 'a helper thread cannot be started: it is tried again'

/** Makes threads with the name in THREAD fail to start while the file in WHILE exists. */
const NO_THREAD = `import { existsSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import threads from 'node:worker_threads'
threads.Worker = class extends threads.Worker {
  constructor(url, options) {
    if (options?.name === process.env.THREAD && existsSync(process.env.WHILE))
      throw Object.assign(new Error('Worker initialization failure: EAGAIN'), { code: 'ERR_WORKER_INIT_FAILED' })
    super(url, options)
  }
}
syncBuiltinESMExports()`

/** Appends the name of each thread to the file in NAMES. */
const NAMED = `import { appendFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import threads from 'node:worker_threads'
threads.Worker = class extends threads.Worker {
  constructor(url, options) {
    if (options?.name) appendFileSync(process.env.NAMES, options.name + '\\n')
    super(url, options)
  }
}
syncBuiltinESMExports()`

const preloadOf = (code: string): string => `--import=data:text/javascript,${encodeURIComponent(code)}`

function failures(program: Program): Record<string, unknown>[] {
  return program.log().filter(({ msg }) => msg === FAILED)
}

async function readyz({ url }: Program): Promise<string> {
  const { status, text } = await call(url, undefined, { method: 'GET', path: '/readyz' })
  return `${status} ${text.trim()}`
}

/** The value of `sluice_degraded`. */
async function degraded({ url }: Program): Promise<string | undefined> {
  const { text } = await call(url, undefined, { method: 'GET', path: '/metrics' })
  return /^sluice_degraded (.+)$/m.exec(text)?.[1]
}

/** Asserts that calls are answered. */
async function expectAnswers({ url }: Program): Promise<void> {
  const request = { method: 'GET', path: '/v1/models', key: 'unknown' }
  for (let turn = 0; turn < 20; turn += 1) expect((await call(url, undefined, request)).status).toBe(401)
}

test('a helper thread that cannot be started is tried again, and calls continue', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-thread-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'no-room')
  writeFileSync(file, '')
  const env = { NODE_OPTIONS: preloadOf(NO_THREAD), THREAD: 'tokenizer', WHILE: file }
  const program = await readyProgram({ config: {}, env })
  expect(await readyz(program)).toBe('200 degraded')
  expect(await degraded(program)).toBe('1')
  await eventually(() => failures(program).length >= 4, 'it is tried again')
  await expectAnswers(program)
  rmSync(file)
  await eventually(async () => (await readyz(program)) === '200 ready', 'it is started')
  expect(await degraded(program)).toBe('0')
})

test('gateway.yaml is reloaded even if no thread can be started to read it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-thread-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const env = { NODE_OPTIONS: preloadOf(NO_THREAD), THREAD: 'sluice configuration', WHILE: folder }
  const program = await readyProgram({ config: {}, env })
  process.kill(program.pid, 'SIGHUP')
  await eventually(() => program.log().some(({ msg }) => msg === 'configuration applied'), 'it is applied')
})

test('a gateway that has no calls and keeps nothing has one thread for its database', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-thread-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'names')
  const env = { NODE_OPTIONS: preloadOf(NAMED), NAMES: file }
  const program = await readyProgram({ config: { users: [ROOT, user(2, 'ann', [token('ann')])] }, env })
  await expectAnswers(program)
  program.kill('SIGTERM')
  await program.exit
  expect(readFileSync(file, 'utf8').split('\n').filter(Boolean).toSorted()).toEqual([
    'sluice database',
    'tokenizer',
  ])
})
