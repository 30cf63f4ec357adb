import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { expect, onTestFinished, test } from 'vitest'
import { FLAGS } from '../../bin/flags.mjs'
import { call } from '../fixtures/client.ts'
import { isAlive, workerPids } from '../fixtures/worker-pids.ts'
import { discard, eventually, type Program, readyProgram, runProgram } from './program.ts'

const BIN = join(import.meta.dirname, '..', '..', 'bin', 'sluice.mjs')
const FAILED = 'a worker cannot be started: it is tried again'
const THREAD_FAILED = 'a helper thread cannot be started: it is tried again'

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

const hasLimits = spawnSync('prlimit', ['--version']).status === 0
if (!hasLimits) console.info('a limit on open files is left out: there is no prlimit')

function failures(program: Program, line = FAILED): Record<string, unknown>[] {
  return program.log().filter(({ msg }) => msg === line)
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

/** Kills a worker that cannot be replaced until `allow` is called. */
async function expectOthersGoOn(program: Program, allow: () => void): Promise<void> {
  const [killed = 0, other = 0] = workerPids(program.pid)
  process.kill(killed, 'SIGKILL')
  await eventually(() => failures(program).length >= 4, 'it is tried again')
  expect(await readyz(program)).toBe('200 degraded')
  expect(await degraded(program)).toBe('1')
  await expectAnswers(program)
  expect(isAlive(other)).toBe(true)
  const times = failures(program).map(({ time }) => Number(time))
  const pauses = times.slice(1).map((time, index) => time - (times[index] ?? 0))
  // Each pause is twice as long as the one before.
  expect(pauses[2]).toBeGreaterThan(2 * (pauses[0] ?? 0))
  allow()
  await eventually(async () => (await readyz(program)) === '200 ready', 'it is replaced')
  expect(await degraded(program)).toBe('0')
  expect(workerPids(program.pid)).toHaveLength(2)
}

test('a worker whose executable file is missing is started again with longer pauses, and other workers continue', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-node-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const node = join(folder, 'node')
  copyFileSync(process.execPath, node)
  const program = await readyProgram({ config: {}, command: [node, BIN, 'start'], env: { WORKERS: '2' } })
  renameSync(node, `${node}.gone`)
  await expectOthersGoOn(program, () => renameSync(`${node}.gone`, node))
})

test.skipIf(!hasLimits)(
  'a worker that cannot start for lack of file descriptors is started again, and other workers continue',
  async () => {
    const program = await readyProgram({ config: {}, env: { WORKERS: '2' } })
    const limit = (count: number | string): void => {
      const { status } = spawnSync('prlimit', [`--pid=${program.pid}`, `--nofile=${count}:`])
      expect(status).toBe(0)
    }
    limit(readdirSync(`/proc/${program.pid}/fd`).length - 2)
    await expectOthersGoOn(program, () => limit(1024))
  },
)

/** Runs two workers whose Node.js is a script; `command` is a line of it. */
async function runWith(command: string): Promise<Program> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-script-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const script = join(folder, 'node')
  writeFileSync(script, `#!/bin/sh\n${command.replaceAll('$FOLDER', folder)}\n`, { mode: 0o755 })
  const preload = `process.execPath = ${JSON.stringify(script)}`
  const program = await runProgram({
    config: {},
    // Without its flags, the program would start itself again by that script.
    command: [process.execPath, ...FLAGS, BIN, 'start'],
    env: { WORKERS: '2', NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}` },
  })
  onTestFinished(() => discard(program))
  return program
}

test('a gateway starts without a worker that fails to start, and tries to start that worker again', async () => {
  const program = await runWith(`mkdir $FOLDER/failed 2>/dev/null && exit 3; exec ${process.execPath} "$@"`)
  await program.ready()
  await eventually(async () => (await readyz(program)) === '200 ready', 'both serve')
  const ends = program.log().filter(({ msg }) => String(msg).startsWith('a worker has ended'))
  expect(ends).toMatchObject([{ code: 3 }])
  expect(workerPids(program.pid)).toHaveLength(2)
})

test('a gateway of which no worker can start exits with an error', async () => {
  const program = await runWith('exit 3')
  expect((await program.exit).code).toBe(1)
  expect(program.err()).toMatch(/^sluice cannot start: worker [12] ended before it was ready \(code 3\)\n$/)
})

test('a helper thread that cannot be started is tried again, and calls continue', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-thread-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'no-room')
  writeFileSync(file, '')
  const preload = `--import=data:text/javascript,${encodeURIComponent(NO_THREAD)}`
  const env = { NODE_OPTIONS: preload, THREAD: 'tokenizer', WHILE: file }
  const program = await readyProgram({ config: {}, env })
  expect(await readyz(program)).toBe('200 degraded')
  expect(await degraded(program)).toBe('1')
  await eventually(() => failures(program, THREAD_FAILED).length >= 4, 'it is tried again')
  await expectAnswers(program)
  rmSync(file)
  await eventually(async () => (await readyz(program)) === '200 ready', 'it is started')
  expect(await degraded(program)).toBe('0')
})

test('gateway.yaml is reloaded even if no thread can be started to read it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-thread-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const preload = `--import=data:text/javascript,${encodeURIComponent(NO_THREAD)}`
  const env = { NODE_OPTIONS: preload, THREAD: 'sluice configuration', WHILE: folder }
  const program = await readyProgram({ config: {}, env })
  process.kill(program.pid, 'SIGHUP')
  await eventually(() => program.log().some(({ msg }) => msg === 'configuration applied'), 'it is applied')
})
