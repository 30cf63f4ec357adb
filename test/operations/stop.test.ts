import { Agent } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { contentFrame, DONE_FRAME, finishFrame } from '../fixtures/behaviour.ts'
import { call, events, open, streamedContent } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type UsageRow } from '../fixtures/database.ts'
import { type PatchedCopy, patchedProgram } from '../fixtures/patched-copy.ts'
import { type RawConnection, rawConnection } from '../fixtures/raw-socket.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { statusOn } from '../fixtures/port.ts'
import { ask, askStream } from '../fixtures/fixture.ts'
import { byTier } from '../runner/tier.ts'
import { discard, eventually, type Program, readyProgram, runProgram } from './program.ts'

const STREAMS = byTier(40, 200)
const EVENTS = 25
const PACE_MS = 100
/** The pause in calls after which the patient program stops listening. */
const PATIENT_PAUSE_MS = 3_000

let upstream: ScriptedUpstream
/** A program whose deadlines a busy machine does not miss, and that outlasts the tests where it waits for them. */
let patient: PatchedCopy
beforeAll(async () => {
  upstream = await startUpstream()
  patient = await patchedProgram([
    // A pause longer than the one between two calls of this process on a busy machine.
    {
      file: 'src/gateway/listen.ts',
      text: 'const PAUSE_MS = 80',
      by: `const PAUSE_MS = ${PATIENT_PAUSE_MS}`,
    },
    {
      file: 'src/gateway/listen.ts',
      text: 'const MAX_LISTENING_MS = 2_000',
      by: 'const MAX_LISTENING_MS = 3_600_000',
    },
    { file: 'src/gateway/listen.ts', text: 'const LINGER_MS = 1_000', by: 'const LINGER_MS = 3_600_000' },
    {
      file: 'src/gateway/graceful-stop.ts',
      text: 'const SETTLING_MS = 5_000',
      by: 'const SETTLING_MS = 3_600_000',
    },
    {
      file: 'src/domain/options.ts',
      text: "drain_timeout: { type: 'duration', default: 30_000 }",
      by: "drain_timeout: { type: 'duration', default: 3_600_000 }",
    },
    { file: 'src/cli/start.ts', text: 'const START_GRACE_MS = 3_000', by: 'const START_GRACE_MS = 240_000' },
  ])
})
afterAll(async () => {
  patient?.discard()
  await upstream?.stop()
})

const patiently = (): readonly string[] => [process.execPath, join(patient.root, 'bin/sluice.mjs'), 'start']

const config = (options: Record<string, unknown> = {}): Configuration => ({
  options,
  models: priced(['m', 'slow']),
  channels: [channel('m', upstream.baseUrl('m')), channel('slow', upstream.baseUrl('slow'))],
  users: [ROOT, user(2, 'ann', [token('ann')])],
})

const rows = ({ folder }: Program): UsageRow[] => databaseOf(folder.path).usage()

const key = 'ann'

/** Whether the port accepts connections. */
function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}

/** Settles once the port accepts no more connections. */
async function closing(port: number): Promise<void> {
  while (await isOpen(port)) await sleep(5)
}

/** A connection that the program has accepted, because it has answered a request on it. */
async function accepted(program: Program): Promise<RawConnection> {
  const connection = rawConnection(program.port, 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n')
  await connection.until('ok\n')
  return connection
}

test(`on SIGTERM the listener closes, ${STREAMS} streams and all other work in progress end normally, and the exit code is 0`, async () => {
  const program = await readyProgram({ config: config({ drain_timeout: '1h' }), ownProcess: true })
  upstream.script('m', { kind: 'stream', events: EVENTS, paceMs: PACE_MS })
  const { promise: after, resolve: answer } = Promise.withResolvers<void>()
  upstream.script('slow', { kind: 'whole', after })
  const idle = new Agent({ keepAlive: true })
  await call(program.url, undefined, { method: 'GET', path: '/healthz', agent: idle })
  const lives = await Promise.all(
    Array.from({ length: STREAMS }, () => open(program.url, askStream('m'), { key })),
  )
  const wholes = [1, 2, 3, 4, 5].map(() => call(program.url, ask('slow'), { key }))
  const body = JSON.stringify(ask('slow'))
  const uploads = [1, 2, 3].map(() =>
    rawConnection(
      program.port,
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 10)}`,
    ),
  )
  await upstream.receivedAtLeast('slow', 5)
  await Promise.all(lives.map((live) => live.until(' word0')))

  program.kill('SIGTERM')
  // The calls and uploads in progress, which end only after this, do not keep the listener open.
  await closing(program.port)
  answer()
  for (const { socket } of uploads) socket.write(body.slice(10))

  const answers = await Promise.all(lives.map((live) => live.end()))
  const whole = Array.from({ length: EVENTS }, (_, index) => ` word${index}`).join('')
  const truncated = answers.filter(
    ({ text, broken }) => broken || events(text).at(-1) !== '[DONE]' || streamedContent(text) !== whole,
  )
  expect(truncated).toEqual([])
  for (const answer of await Promise.all(wholes)) expect(answer.json().usage.completion_tokens).toBe(5)
  for (const upload of uploads) expect(await upload.until('"total_tokens":15')).toMatch(/^HTTP\/1\.1 200 /)
  expect(await program.exit).toMatchObject({ code: 0, signal: null })
  idle.destroy()
  expect(program.err()).toBe('')
  expect(rows(program).filter(({ reason }) => reason === 'complete')).toHaveLength(STREAMS + 8)
  expect(databaseOf(program.folder.path).openHolds()).toEqual([])
})

test('calls that outlast drain_timeout after SIGTERM end in an error and are settled, and the exit code is 0', async () => {
  const program = await readyProgram({ config: config({ drain_timeout: '700ms' }), cwd: patient.root })
  // The tokenizer, which counts a response without usage, is loaded with the first such response, which may
  // take longer than a settlement may.
  upstream.script('m', { kind: 'whole', usage: null })
  await call(program.url, ask('m'), { key })
  upstream.script('m', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 20 })
  upstream.script('slow', { kind: 'silence' })
  const live = await open(program.url, askStream('m'), { key })
  const whole = call(program.url, ask('slow'), { key })
  const unbegun = call(program.url, askStream('slow'), { key })
  await upstream.receivedAtLeast('slow', 2)
  await live.until(' word1')
  const asked = performance.now()
  program.kill('SIGINT')
  const ended = await live.end()
  expect(performance.now() - asked).toBeGreaterThanOrEqual(690)
  expect(ended.broken).toBe(false)
  const last = JSON.parse(events(ended.text).at(-1) ?? '') as { error: { message: string } }
  expect(last.error).toMatchObject({ type: 'gateway_error', code: 'overloaded' })
  expect(last.error.message).toMatch(/stopping/)
  expect(last.error.message).toContain(String(ended.headers['x-request-id']))
  for (const answer of [await whole, await unbegun]) {
    expect(answer.status).toBe(503)
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
  }
  expect((await program.exit).code).toBe(0)
  const row = rows(program).find(({ id }) => id === ended.headers['x-request-id'])
  expect(row).toMatchObject({ reason: 'cut' })
  const words = events(ended.text).filter((data) => data.includes(' word')).length
  // At least the received words, each of one or two tokens at four quota units.
  expect(row?.quota).toBeGreaterThanOrEqual(4 * words)
  expect(rows(program).filter(({ reason }) => reason === 'failed')).toHaveLength(2)
  expect(databaseOf(program.folder.path).openHolds()).toEqual([])
})

test('a call whose body arrives after drain_timeout is refused without an upstream call, and the exit code is 0', async () => {
  const program = await readyProgram({ config: config({ drain_timeout: '300ms' }), command: patiently() })
  upstream.script('m', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 20 })
  const body = JSON.stringify(askStream('m'))
  const late = await accepted(program)
  late.socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 10)}`,
  )
  const idle = await accepted(program)
  program.kill('SIGTERM')
  // Connections without a request are closed after the timeout.
  await idle.closed()
  late.socket.write(body.slice(10))
  expect(await late.until('"code":"overloaded"')).toMatch(/ok\nHTTP\/1\.1 503 /)
  expect((await program.exit).code).toBe(0)
  expect(upstream.received('m')).toHaveLength(0)
  expect(databaseOf(program.folder.path).openHolds()).toEqual([])
})

test('after SIGTERM /readyz is 503 at once, and the listener stays open and answers calls as long as they arrive', async () => {
  upstream.script('m', { kind: 'whole' })
  /** Makes calls during a stop. Resolves to false if this process was halted, so that no calls arrived for a while. */
  const callDuringStop = async (): Promise<boolean> => {
    const program = await readyProgram({ config: config(), command: patiently() })
    let [lastAt, longestMs] = [performance.now(), 0]
    program.kill('SIGTERM')
    let readiness: Promise<number> | undefined
    // Each call uses a new connection.
    const calls: Promise<number>[] = []
    while (calls.length < 40) {
      const answer = call(program.url, ask('m'), { key })
      calls.push(
        answer.then(
          ({ status }) => status,
          () => 0,
        ),
      )
      if (calls.length === 5) readiness = statusOn(program.port, '/readyz')
      await sleep(10)
      const now = performance.now()
      longestMs = Math.max(longestMs, now - lastAt)
      lastAt = now
    }
    const statuses = await Promise.all(calls)
    const { code } = await program.exit
    if (longestMs > PATIENT_PAUSE_MS / 2) return false
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(await readiness).toBe(503)
    expect(code).toBe(0)
    expect(rows(program)).toHaveLength(calls.length)
    return true
  }
  while (!(await callDuringStop()));
})

test('a gateway that is stopped while calls arrive without a pause closes its listener within 20 seconds', async () => {
  const program = await readyProgram({ config: config() })
  program.kill('SIGTERM')
  const stopped = performance.now()
  /** Makes one request after another, each on a new connection. Resolves to false if the listener stays open. */
  const askUntilClosed = async (): Promise<boolean> => {
    // A gateway that was halted gives a few answers before it looks at the time.
    for (let late = 0; late < 100; ) {
      if (!(await isOpen(program.port))) return true
      const isAnswered = (await statusOn(program.port, '/healthz')) === 200
      if (isAnswered && performance.now() - stopped > 20_000) late += 1
    }
    return false
  }
  expect(await Promise.all([1, 2, 3, 4].map(askUntilClosed))).toEqual([true, true, true, true])
  expect((await program.exit).code).toBe(0)
})

test('new calls on open connections are refused with retry-after while the gateway drains', async () => {
  const program = await readyProgram({ config: config() })
  const { promise: after, resolve: finish } = Promise.withResolvers<void>()
  const frames = [contentFrame(' word0')]
  upstream.script('m', { kind: 'stream', frames, rest: { after, frames: [finishFrame(), DONE_FRAME] } })
  const live = await open(program.url, askStream('m'), { key })
  await live.until(' word0')
  const body = JSON.stringify(ask('m'))
  const late = await accepted(program)
  late.socket.write('POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n')
  const idle = await accepted(program)
  program.kill('SIGTERM')
  // Connections without a request are closed after the second that connected clients get.
  await idle.closed()
  late.socket.write(
    `authorization: Bearer sk-${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  expect(await late.until('"code":"overloaded"')).toMatch(/ok\nHTTP\/1\.1 503 [^]*retry-after: \d/i)
  finish()
  expect((await live.end()).text).toContain('[DONE]')
  expect((await program.exit).code).toBe(0)
  expect(upstream.received('m')).toHaveLength(1)
})

test('a call that arrives on an idle connection during the stop is answered, with connection: close', async () => {
  const program = await readyProgram({ config: config(), command: patiently() })
  upstream.script('m', { kind: 'whole' })
  const kept = await accepted(program)
  program.kill('SIGTERM')
  await closing(program.port)
  const body = JSON.stringify(ask('m'))
  kept.socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  const answered = (await kept.closed()).split('ok\n')[1] ?? ''
  expect(answered).toContain('HTTP/1.1 200 ')
  expect(answered).toMatch(/^connection: close\r$/im)
  expect((await program.exit).code).toBe(0)
})

test.each([
  ['SIGINT', 'SIGINT'],
  ['SIGTERM', 'SIGINT'],
] as const)(
  'a second signal during a stop (%s, %s) ends the gateway at once, and the next start settles the open calls',
  async (first, second) => {
    const program = await readyProgram({ config: config(), ownProcess: true })
    upstream.script('m', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 20 })
    const lives = await Promise.all([1, 2, 3].map(() => open(program.url, askStream('m'), { key })))
    await Promise.all(lives.map((live) => live.until(' word2')))
    program.kill(first)
    await eventually(() => program.out().includes(`${first}: `), 'the first signal was heard')
    let isOver = false
    void program.exit.then(() => (isOver = true))
    // In the first second it counts as npm's copy of the first one.
    await eventually(() => {
      program.kill(second)
      return isOver
    }, 'the second signal ends the program')
    expect((await program.exit).code).toBe(1)
    expect(databaseOf(program.folder.path).openHolds()).toHaveLength(3)

    const next = await readyProgram({ folder: program.folder })
    // The program reports it at the end of its start, after it began to take calls.
    await expect.poll(() => next.out()).toMatch(/Settled 3 calls that an earlier run left open: [1-9]/)
    const crashed = rows(next).filter(({ reason }) => reason === 'crash')
    expect(crashed.map(({ id }) => id).toSorted()).toEqual(
      lives.map(({ headers }) => String(headers['x-request-id'])).toSorted(),
    )
    for (const { quota } of crashed) expect(quota).toBeGreaterThan(0)
    expect(databaseOf(program.folder.path).openHolds()).toEqual([])
  },
)

test('a signal during the start stops the gateway once it has started, with exit code 0', async () => {
  const program = await runProgram({ config: config(), command: patiently() })
  onTestFinished(() => discard(program))
  await eventually(() => isOpen(program.port), 'it listens')
  program.kill('SIGTERM')
  expect(await program.exit).toMatchObject({ code: 0, signal: null })
  expect(program.out()).toContain('SIGTERM: no new calls')
  expect(program.err()).toBe('')
})

test('SIGHUP during the start does not end the gateway, which reads gateway.yaml again once it has started', async () => {
  const program = await runProgram({ config: config(), ownProcess: true })
  onTestFinished(() => discard(program))
  await eventually(() => isOpen(program.port), 'it listens')
  program.kill('SIGHUP')
  await program.ready()
  await eventually(() => program.out().includes('"msg":"configuration applied"'), 'a reading')
})

test('a start that waits for a silent database ends soon after a signal', async () => {
  const sockets = new Set<{ destroy(): void }>()
  const silent = createServer((socket) => void sockets.add(socket)).listen(0, '127.0.0.1')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
  await eventually(() => silent.listening, 'it listens')
  const { port } = silent.address() as AddressInfo
  const program = await runProgram({
    ownProcess: true,
    config: config(),
    env: { DATABASE_URL: `postgres://u@127.0.0.1:${port}/d` },
  })
  onTestFinished(() => discard(program))
  await eventually(() => sockets.size > 0, 'it asks the database')
  program.kill('SIGTERM')
  expect(await program.exit).toMatchObject({ code: 1, signal: null })
  // The start did not wait for the connection timeout, which would be reported here.
  expect(program.err()).toBe('')
})
