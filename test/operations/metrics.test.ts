import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  contentFrame,
  DONE_FRAME,
  finishFrame,
  roleFrame,
  usageFrame,
  usageText,
} from '../fixtures/behaviour.ts'
import { call, open } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { ask, askStream } from '../fixtures/fixture.ts'
import { type Line, metricsOf, readMetrics } from './metrics-text.ts'
import { discard, eventually, type Program, runProgram } from './program.ts'

let upstream: ScriptedUpstream
let program: Program
beforeAll(async () => {
  upstream = await startUpstream()
  program = await runProgram({
    config: {
      models: priced(['m', 'n']),
      channels: [
        channel('first', upstream.baseUrl('first'), { models: ['m'], priority: 1 }),
        channel('second', upstream.baseUrl('second'), { models: ['m', 'n'] }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
  })
  await program.ready()
})
afterAll(async () => {
  await discard(program)
  await upstream?.stop()
})

const chat = (body: object): ReturnType<typeof call> => call(program.url, body, { key: 'ann' })

interface Row {
  readonly model: string
  readonly channel: string
  readonly stream: number
  readonly reason: string
  readonly quota: number
  readonly input_tokens: number
  readonly cache_read_tokens: number
  readonly output_tokens: number
}

const rows = (): Row[] => databaseOf(program.folder.path).usage()

const total = (own: readonly Row[], read: (row: Row) => number): number =>
  own.reduce((sum, row) => sum + read(row), 0)

test('/metrics is valid Prometheus text, and all metrics of calls are zero before the first call', async () => {
  const page = await metricsOf(program.url)
  for (const name of ['open_streams', 'open_holds']) expect(page.sum(`sluice_${name}`)).toBe(0)
  // A start writes, too.
  await expect.poll(async () => (await metricsOf(program.url)).sum('sluice_ledger_lag')).toBe(0)
  expect(page.sum('sluice_tokens_total') + page.sum('sluice_quota_total')).toBe(0)
  expect(page.sum('sluice_resident_memory_bytes')).toBeGreaterThan(20e6)
})

test('every counter whose growth raises an alert of the tutorial is 0 from the start, so that its first step is growth', async () => {
  const tutorial = join(import.meta.dirname, '../../docs/tutorials/prometheus-grafana.md')
  const watched = [...readFileSync(tutorial, 'utf8').matchAll(/increase\((\w+)(?:\{(\w+)="(\w+)"\})?\[/g)]
  expect(watched.length).toBeGreaterThanOrEqual(3)
  const { families } = await metricsOf(program.url)
  const startOf = (name: string): Line[] => families.get(name)?.lines.filter(({ value }) => value === 0) ?? []
  for (const [, name = '', label, value] of watched)
    expect(
      startOf(name).filter(({ labels }) => label === undefined || labels[label] === value),
      name,
    ).not.toEqual([])
  expect(startOf('sluice_upstream_unasked_total').map(({ labels }) => labels['channel'])).toEqual([
    'first',
    'second',
  ])
  expect(startOf('sluice_kept_responses_lost_total')).toHaveLength(1)
})

test('the metrics of tokens and quota by model and channel equal the sums of the usage log', async () => {
  upstream.decide('first', ({ text }) => {
    const { user: kind, stream } = JSON.parse(text)
    if (kind === 'broken') return { kind: 'status', status: 500 }
    if (kind === 'limited') return { kind: 'status', status: 429 }
    if (kind === 'invalid') return { kind: 'status', status: 400 }
    return stream
      ? { kind: 'stream', usage: usageText(100, 7) }
      : { kind: 'whole', usage: usageText(20, 3, 8) }
  })
  for (let i = 0; i < 3; i++) expect((await chat(ask('m'))).status).toBe(200)
  for (let i = 0; i < 2; i++) expect((await chat(askStream('m'))).status).toBe(200)
  expect((await chat(ask('m', { user: 'invalid' }))).status).toBe(400)
  // Last, since the key of a channel that answers 429 is not asked again for a while.
  for (const kind of ['broken', 'broken', 'limited'])
    expect((await chat(ask('m', { user: kind }))).status).toBe(200)
  expect((await chat(askStream('n'))).status).toBe(200)
  expect((await call(program.url, ask('m'), { key: 'nobody' })).status).toBe(401)
  await eventually(() => rows().length === 10, 'ten rows')

  const page = await metricsOf(program.url)
  for (const model of ['m', 'n']) {
    for (const name of ['first', 'second']) {
      const own = rows().filter((row) => row.model === model && row.channel === name)
      const at = { model, channel: name }
      expect(page.sum('sluice_quota_total', at)).toBe(total(own, ({ quota }) => quota))
      for (const [kind, column] of [
        ['input', 'input_tokens'],
        ['cacheRead', 'cache_read_tokens'],
        ['output', 'output_tokens'],
      ] as const)
        expect(page.sum('sluice_tokens_total', { ...at, kind })).toBe(total(own, (row) => row[column]))
      for (const stream of [0, 1]) {
        const labels = { ...at, stream: stream ? 'true' : 'false' }
        const count = own.filter((row) => row.stream === stream).length
        expect(page.sum('sluice_call_duration_seconds_count', labels)).toBe(count)
      }
    }
  }
  // Computed by hand: 3 × (12 + 8 cached, 3 out), 2 × (100, 7), 3 × (10, 5) elsewhere; the stream of n
  // (10, 5).
  expect(page.sum('sluice_quota_total', { model: 'm', channel: 'first' })).toBe(3 * (12 + 2 + 12) + 2 * 128)
  expect(page.sum('sluice_quota_total', { model: 'm', channel: 'second' })).toBe(3 * 30)
  expect(page.sum('sluice_quota_total', { model: 'n' })).toBe(30)
  expect(page.sum('sluice_tokens_total', { kind: 'cacheRead' })).toBe(3 * 8)

  const path = '/v1/chat/completions'
  expect(page.sum('sluice_requests_total', { path, status: '200' })).toBe(9)
  expect(page.sum('sluice_requests_total', { path, status: '400' })).toBe(1)
  expect(page.sum('sluice_requests_total', { path, status: '401' })).toBe(1)
  expect(page.sum('sluice_settlements_total', { reason: 'complete' })).toBe(9)
  expect(page.sum('sluice_settlements_total', { reason: 'failed' })).toBe(1)
  expect(page.sum('sluice_upstream_errors_total', { channel: 'first', cause: 'status 500' })).toBe(2)
  expect(page.sum('sluice_upstream_errors_total', { channel: 'first', cause: 'status 429' })).toBe(1)
  expect(page.sum('sluice_upstream_errors_total', { channel: 'second' })).toBe(0)
  expect(page.sum('sluice_first_byte_seconds_count')).toBe(9)
})

test('the metrics of call durations and of the time to the first byte count each call in the histogram bucket of its seconds', async () => {
  const before = await metricsOf(program.url)
  const at = { model: 'n', channel: 'second', stream: 'true' }
  const { promise: isSeen, resolve: seen } = Promise.withResolvers<void>()
  const rest = {
    after: isSeen.then(() => sleep(600)),
    frames: [finishFrame(), usageFrame(usageText(10, 3)), DONE_FRAME],
  }
  const frames = [roleFrame(), contentFrame(' first')]
  upstream.decide('second', () => ({ kind: 'stream', frames, rest, after: sleep(300) }))
  const began = performance.now()
  const live = await open(program.url, askStream('n'), { key: 'ann' })
  await live.until(' first')
  seen()
  await live.end()
  const after = await metricsOf(program.url)
  const tookSeconds = (performance.now() - began) / 1000
  const moved = (name: string, labels: Record<string, string> = {}): number =>
    after.sum(name, { ...at, ...labels }) - before.sum(name, { ...at, ...labels })
  // 300 ms until it begins, and 600 ms after the client received the beginning.
  expect(moved('sluice_first_byte_seconds_sum')).toBeGreaterThanOrEqual(0.29)
  expect(moved('sluice_first_byte_seconds_sum')).toBeLessThan(tookSeconds - 0.55)
  expect(moved('sluice_call_duration_seconds_sum')).toBeGreaterThanOrEqual(0.88)
  expect(moved('sluice_call_duration_seconds_sum')).toBeLessThan(tookSeconds)
  expect(moved('sluice_call_duration_seconds_bucket', { le: '0.5' })).toBe(0)
  const durationSeconds = moved('sluice_call_duration_seconds_sum')
  for (const le of ['1', '2.5', '5', '10'])
    expect(moved('sluice_call_duration_seconds_bucket', { le }), le).toBe(
      durationSeconds <= Number(le) ? 1 : 0,
    )
  upstream.script('second', { kind: 'stream' })
})

test('the metrics have the numbers of open streams, open calls and open holds', async () => {
  const before = upstream.received('first').length
  const isServing = async (): Promise<boolean> => {
    await chat(ask('m'))
    return upstream.received('first').length > before
  }
  await eventually(isServing, 'the first channel serving again after its 429')
  upstream.script('first', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 20 })
  const lives = await Promise.all([1, 2, 3].map(() => open(program.url, askStream('m'), { key: 'ann' })))
  await Promise.all(lives.map((live) => live.until(' word1')))
  const during = await metricsOf(program.url)
  expect(during.sum('sluice_open_streams')).toBe(3)
  expect(during.sum('sluice_open_holds')).toBe(3)
  // The three calls, and the request for the metrics.
  expect(during.sum('sluice_open_calls')).toBe(4)
  for (const live of lives) live.abort()
  await eventually(async () => {
    const page = await metricsOf(program.url)
    return page.sum('sluice_open_streams') + page.sum('sluice_open_holds') === 0
  }, 'none under way')
  expect((await metricsOf(program.url)).sum('sluice_settlements_total', { reason: 'client_gone' })).toBe(3)
})

test('the metric of unwritten charges grows while the database cannot be written', async () => {
  upstream.script('first', { kind: 'whole' })
  const database = new DatabaseSync(join(program.folder.path, 'sluice.db'), { timeout: 5000 })
  database.exec('BEGIN EXCLUSIVE')
  const refused = chat(ask('m'))
  await eventually(
    async () => (await metricsOf(program.url)).sum('sluice_ledger_lag') > 0,
    'writes that wait',
  )
  database.exec('ROLLBACK')
  database.close()
  await refused
  await eventually(async () => (await metricsOf(program.url)).sum('sluice_ledger_lag') === 0, 'all written')
})

test('the metric of the event loop delay is almost zero in an idle gateway', async () => {
  const own = monitorEventLoopDelay({ resolution: 10 })
  // A busy machine delays the gateway occasionally, so that one quiet moment is enough.
  const delay = async (): Promise<number> => {
    await metricsOf(program.url)
    own.reset()
    own.enable()
    await sleep(500)
    own.disable()
    const idle = Math.max(0.015, (5 * own.percentile(50)) / 1e9)
    return (await metricsOf(program.url)).sum('sluice_event_loop_delay_p50_seconds') / idle
  }
  await expect.poll(delay).toBeLessThan(1)
})

test('the metric of the longest event loop delay has a pause of the event loop at the next scrape only', async () => {
  const longest = async (): Promise<number> =>
    (await metricsOf(program.url)).sum('sluice_event_loop_delay_max_seconds')
  const afterPause = async (): Promise<number> => {
    // After a scrape, the next sample only sets the start of the interval; there are ten samples a second, and fewer
    // on a busy machine, on which the pause is repeated.
    await sleep(300)
    program.kill('SIGSTOP')
    await sleep(900)
    program.kill('SIGCONT')
    await sleep(300)
    return longest()
  }
  await expect.poll(afterPause).toBeGreaterThan(0.6)
  await expect.poll(longest, { interval: 300 }).toBeLessThan(0.6)
})

test('requests with unknown models or paths create no new series in the metrics', async () => {
  const seriesOf = (lines: readonly Line[]): string[] =>
    lines.map(({ name, labels }) => JSON.stringify([name, labels]))
  const count = async (): Promise<number> => {
    const { families } = await metricsOf(program.url)
    return new Set([...families.values()].flatMap(({ lines }) => seriesOf(lines))).size
  }
  const stray = async (i: number): Promise<void> => {
    await chat(ask(`model-${i}`))
    await call(program.url, undefined, { method: 'GET', path: `/path-${i}?query=${i}` })
    await call(program.url, undefined, { method: 'DELETE', path: '/v1/chat/completions' })
    await call(program.url, ask('m'), { key: `key${i}` })
  }
  await stray(0)
  const before = await count()
  for (let i = 1; i < 40; i++) await stray(i)
  expect(await count()).toBe(before)
  expect((await metricsOf(program.url)).sum('sluice_requests_total', { path: 'other', status: '404' })).toBe(
    40,
  )
})

test.each([
  ['a series twice', '# HELP a_total A.\n# TYPE a_total counter\na_total 1\na_total 2\n'],
  ['a counter without its name', '# HELP a A.\n# TYPE a counter\na 1\n'],
  ['a line without a family', 'a 1\n'],
  ['an unfinished page', '# HELP a A.\n# TYPE a gauge\na 1'],
  ['a quote in a label', '# HELP a A.\n# TYPE a gauge\na{b="c"d"} 1\n'],
  [
    'a histogram that shrinks',
    '# HELP a A.\n# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n',
  ],
  ['a histogram without an end', '# HELP a A.\n# TYPE a histogram\na_bucket{le="1"} 2\na_sum 1\na_count 2\n'],
])('the parser with which the tests read /metrics rejects invalid text: %s', (_, text) => {
  expect(() => readMetrics(text)).toThrow()
})
