import { Agent } from 'node:http'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { type FullResponse, type LiveResponse, open } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { untilOpen } from '../fixtures/open-calls.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { workerPids } from '../fixtures/worker-pids.ts'
import { workersIn } from './fixture.ts'

const WORKERS = 2
const MODELS = ['mixed', 'live', 'left', 'gone', 'breaking', 'big', 'killed'] as const
const SOON = { timeout: 60_000, interval: 50 }
/** Ten prompt and five output tokens. */
const USAGE = usageText(10, 5)
const COST = 30

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture(
    (upstream) => ({
      options: { retries: 0, cache: { ttl: '10m' } },
      rate_limits: {},
      models: priced([...MODELS]),
      channels: MODELS.map((name) => channel(name, upstream.baseUrl(name))),
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { env: { WORKERS: String(WORKERS) } },
  )
})
afterAll(() => fixture?.close())
beforeEach(untilAllServe)

/** Waits until each worker has answered, because connections are distributed randomly. */
async function untilAllServe(): Promise<void> {
  const before = fixture.gateway.logs().length
  await vi.waitFor(async () => {
    expect(workerPids(fixture.gateway.pid)).toHaveLength(WORKERS)
    await Promise.all(many(8, () => fixture.chat('nobody', ask('mixed'))))
    expect(serving(before)).toBe(WORKERS)
  }, SOON)
}

const serving = (from: number): number => workersIn(fixture.gateway.logs().slice(from)).size
const asked = (lane: string): number => fixture.upstream.received(lane).length
const isWhole = ({ text }: FullResponse): boolean => text.includes('[DONE]')
const many = <Result>(count: number, make: () => Promise<Result>): Promise<Result>[] =>
  Array.from({ length: count }, make)
const streams = (model: string, count: number): Promise<LiveResponse[]> =>
  Promise.all(many(count, () => open(fixture.gateway.url, askStream(model), { key: 'ann' })))
const chargesOf = (model: string): number[] =>
  databaseOf(fixture.gateway.dataDir)
    .usage()
    .filter((row) => row.model === model)
    .map(({ quota }) => quota)

/** A connection to one worker, and that worker's process. */
async function connectionTo(): Promise<{ readonly agent: Agent; readonly pid: number }> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const { headers } = await fixture.chat('nobody', ask('mixed'), { agent })
  const id = String(headers['x-request-id'])
  const lineOf = (): string | undefined =>
    fixture.gateway
      .logs()
      .split('\n')
      .find((line) => line.includes(id))
  await expect.poll(lineOf).toBeDefined()
  const { worker } = JSON.parse(lineOf() ?? '') as { worker: number }
  return { agent, pid: workerPids(fixture.gateway.pid)[worker - 1] ?? Number.NaN }
}

test('1,000 simultaneous equal calls to all workers make one upstream call, and get equal answers for one charge', async () => {
  const before = fixture.gateway.logs().length
  const release = Promise.withResolvers<void>()
  fixture.upstream.script('mixed', { kind: 'whole', content: 'one', usage: USAGE, after: release.promise })
  const whole = many(500, () => fixture.chat('ann', ask('mixed')))
  const streamed = many(500, () => fixture.chat('ann', askStream('mixed')))
  await untilOpen(fixture.gateway.url, 1_000)
  release.resolve()
  const answers = await Promise.all(whole)
  expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
  const events = await Promise.all(streamed)
  expect(new Set(events.map(({ text }) => text)).size).toBe(1)
  expect(events.every(isWhole)).toBe(true)
  expect(asked('mixed')).toBe(1)
  const statuses = [...answers, ...events].map(({ headers }) => headers['x-gateway-cache'])
  expect(statuses.filter((status) => status === 'miss')).toHaveLength(1)
  expect(statuses.filter((status) => status === 'hit')).toHaveLength(999)
  await expect.poll(() => chargesOf('mixed').length).toBe(1_000)
  expect(chargesOf('mixed').filter((quota) => quota > 0)).toEqual([COST])
  await expect.poll(() => serving(before)).toBe(WORKERS)
})

test('equal streams on all workers share one upstream call, and get its bytes as they arrive', async () => {
  const release = Promise.withResolvers<void>()
  fixture.upstream.script('live', { kind: 'stream', events: 3, endsAfter: release.promise, usage: USAGE })
  const live = await streams('live', 24)
  for (const one of live) await one.until('word')
  release.resolve()
  const answers = await Promise.all(live.map((one) => one.end()))
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
  expect(answers.every(isWhole)).toBe(true)
  expect(asked('live')).toBe(1)
})

test('an upstream call that equal calls share continues when its first client leaves while those of other workers wait', async () => {
  const release = Promise.withResolvers<void>()
  fixture.upstream.script('left', { kind: 'stream', events: 3, endsAfter: release.promise, usage: USAGE })
  const [first] = await streams('left', 1)
  await first?.until('word')
  const others = await streams('left', 24)
  for (const one of others) await one.until('word')
  first?.abort()
  await sleep(300)
  release.resolve()
  const answers = await Promise.all(others.map((one) => one.end()))
  expect(answers.every(isWhole)).toBe(true)
  expect([asked('left'), fixture.upstream.only('left').completed]).toEqual([1, true])
})

test('an upstream call that equal calls share is aborted when the last client of all workers has left', async () => {
  fixture.upstream.script('gone', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 5 })
  const clients = await streams('gone', 24)
  for (const one of clients) await one.until('word')
  const [received] = fixture.upstream.received('gone')
  for (const one of clients) one.abort()
  await received?.ended
  expect([asked('gone'), received?.completed]).toEqual([1, false])
})

test('a shared stream that breaks off ends for clients that got a part of it; clients that got nothing share one further call', async () => {
  const breaks = Promise.withResolvers<void>()
  fixture.upstream.script(
    'breaking',
    { kind: 'stream', events: 3, word: 'lost ', endsAfter: breaks.promise, ending: 'reset' },
    { kind: 'whole', content: 'found', usage: USAGE },
  )
  const live = await streams('breaking', 24)
  for (const one of live) await one.until('lost ')
  const whole = many(200, () => fixture.chat('ann', ask('breaking')))
  await untilOpen(fixture.gateway.url, 224)
  breaks.resolve()
  for (const one of live) {
    const end = await one.end()
    expect(end.broken || !isWhole(end)).toBe(true)
  }
  const answers = await Promise.all(whole)
  expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
  expect(answers[0]?.json().choices[0]?.message.content).toBe('found')
  expect(asked('breaking')).toBe(2)
})

test('an answer of many megabytes that equal calls share reaches the clients of all workers', async () => {
  const release = Promise.withResolvers<void>()
  const content = 'x'.repeat(8 * 2 ** 20)
  fixture.upstream.script('big', { kind: 'whole', content, usage: USAGE, after: release.promise })
  const calls = many(12, () => fixture.chat('ann', ask('big')))
  await untilOpen(fixture.gateway.url, 12)
  release.resolve()
  const answers = await Promise.all(calls)
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
  expect(asked('big')).toBe(1)
})

test('when the worker of an upstream call that equal calls share is killed, one further call serves the other workers', async () => {
  const release = Promise.withResolvers<void>()
  fixture.upstream.script(
    'killed',
    { kind: 'stream', events: 3, word: 'lost ', ending: 'stall' },
    { kind: 'whole', content: 'found', usage: USAGE, after: release.promise },
  )
  const { agent, pid } = await connectionTo()
  const first = await open(fixture.gateway.url, askStream('killed'), { key: 'ann', agent })
  await first.until('lost ')
  const live = await streams('killed', 24)
  for (const one of live) await one.until('lost ')
  const whole = many(100, () => fixture.chat('ann', ask('killed')).catch(() => undefined))
  await untilOpen(fixture.gateway.url, 125)
  process.kill(pid, 'SIGKILL')
  for (const one of [first, ...live]) expect((await one.end()).broken).toBe(true)
  await fixture.upstream.receivedAtLeast('killed', 2)
  await sleep(300)
  release.resolve()
  const answers = (await Promise.all(whole)).filter((answer) => answer !== undefined)
  expect(answers.length).toBeGreaterThan(0)
  expect(answers.length).toBeLessThan(100)
  expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
  expect(answers[0]?.json().choices[0]?.message.content).toBe('found')
  expect(asked('killed')).toBe(2)
})
