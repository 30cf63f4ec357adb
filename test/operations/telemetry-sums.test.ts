import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { type Behaviour, usageText } from '../fixtures/behaviour.ts'
import { call, open } from '../fixtures/client.ts'
import { type Collector, type Point, type Span, startCollector, textIn } from '../fixtures/collector.ts'
import {
  ADMIN,
  ADMIN_USER,
  channel,
  type Configuration,
  ROOT,
  token,
  user,
} from '../fixtures/configuration.ts'
import { DIALECT_MODELS, dialectBehaviour, dialectChannels } from '../fixtures/dialect-traffic.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { discard, eventually, type Program, runProgram } from './program.ts'

/** The row of a call in the usage log. */
interface Row {
  readonly request_id: string
  readonly quota: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly cached_tokens: number
  readonly duration_ms: number
  readonly is_stream: boolean
  readonly reason: string
  readonly kind: string
}

const CONVERSATIONS = ['texts', 'claude', 'answers', 'gem']
const SPARE = ['failing', 'breaking', 'endless', 'broke']
const QUOTA_PER_UNIT = 500_000

/** A request of each dialect for a model. */
const requests = (model: string, stream: boolean): { readonly path: string; readonly body: object }[] => [
  {
    path: '/v1/chat/completions',
    body: { model, messages: [{ role: 'user', content: 'hi' }], max_tokens: 20, stream },
  },
  {
    path: '/v1/messages',
    body: { model, messages: [{ role: 'user', content: 'hi' }], max_tokens: 20, stream },
  },
  { path: '/v1/responses', body: { model, input: 'hi', max_output_tokens: 20, stream } },
  {
    path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
  },
]

const OTHERS = [
  { path: '/v1/completions', body: { model: 'texts', prompt: 'hi', max_tokens: 20 } },
  { path: '/v1/embeddings', body: { model: 'vectors', input: 'hi' } },
  { path: '/v1/rerank', body: { model: 'ranker', query: 'which?', documents: ['zero', 'one'] } },
  { path: '/v1/moderations', body: { model: 'judge', input: 'hi' } },
]

const CACHED = usageText(40, 6, 30)

let upstream: ScriptedUpstream
let collector: Collector
let program: Program
let rows: Row[]
let spans: Span[]
let points: Point[]
let totals: { quota: number; input_tokens: number; output_tokens: number; calls: number }

beforeAll(async () => {
  ;[upstream, collector] = await Promise.all([startUpstream(), startCollector()])
  const spare = (model: string, lanes: readonly string[]): Record<string, unknown>[] =>
    lanes.map((lane, i) =>
      channel(`${model}-${i}`, upstream.baseUrl(lane), {
        models: [model],
        priority: -i,
        on_client_gone: 'cancel',
      }),
    )
  const config: Configuration = {
    // Nothing is kept unless a call asks for it.
    options: { cache: { price: 0.5 } },
    models: {
      ...DIALECT_MODELS,
      ...Object.fromEntries(SPARE.map((name) => [name, { price: { input: 3, output: 12 } }])),
    },
    channels: [
      ...dialectChannels(upstream, 'all'),
      ...spare('failing', ['down', 'up']),
      ...spare('breaking', ['breaking']),
      ...spare('endless', ['endless']),
      ...spare('broke', ['down']),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')]), ADMIN_USER],
  }
  upstream.decide('all', (received) =>
    received.path.startsWith('/v1/chat/completions')
      ? chatBehaviour(received.text)
      : dialectBehaviour(received),
  )
  upstream.decide('down', () => ({ kind: 'status', status: 500 }))
  upstream.decide('up', () => ({ kind: 'whole', usage: CACHED }))
  upstream.decide('breaking', () => ({ kind: 'stream', events: 3, ending: 'reset' }))
  upstream.decide('endless', () => ({ kind: 'stream', events: Infinity, paceMs: 5 }))
  program = await runProgram({
    config,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      // An export that is late is lost, and this machine may be busy.
      OTEL_EXPORTER_OTLP_TIMEOUT: '60000',
      OTEL_METRIC_EXPORT_INTERVAL: '200',
    },
  })
  await program.ready()
  await makeCalls()
  rows = await settledRows()
  totals = await usageTotals()
  program.kill('SIGTERM')
  await program.exit
  spans = collector.spans()
  points = collector.points()
})
afterAll(async () => {
  await discard(program)
  await Promise.all([collector?.stop(), upstream?.stop()])
})

const chatBehaviour = (text: string): Behaviour =>
  text.includes('"stream":true')
    ? { kind: 'stream', events: 3, paceMs: 3, usage: CACHED }
    : { kind: 'whole', usage: CACHED }

/** Number of calls that `makeCalls` makes. */
const CALLS = CONVERSATIONS.length * 4 * 2 + OTHERS.length + 6

async function makeCalls(): Promise<void> {
  const send = (path: string, body: object) => call(program.url, body, { key: 'ann', path })
  for (const model of CONVERSATIONS)
    for (const stream of [false, true])
      for (const { path, body } of requests(model, stream)) expect((await send(path, body)).status).toBe(200)
  for (const { path, body } of OTHERS) expect((await send(path, body)).status).toBe(200)
  const ask = (model: string, stream: boolean) => requests(model, stream)[0] as { path: string; body: object }
  const [failing, broke] = [ask('failing', false), ask('broke', false)]
  expect((await send(failing.path, failing.body)).status).toBe(200)
  expect((await send(broke.path, broke.body)).status).toBe(500)
  const kept = ask('texts', true)
  const headers = { 'cache-control': 'max-age=60' }
  const answers = []
  for (let time = 0; time < 2; time += 1)
    answers.push(await call(program.url, kept.body, { key: 'ann', path: kept.path, headers }))
  expect(answers.map((answer) => answer.headers['x-gateway-cache'])).toEqual(['miss', 'hit'])
  const breaking = ask('breaking', true)
  await (await open(program.url, breaking.body, { key: 'ann', path: breaking.path })).end()
  const endless = ask('endless', true)
  const left = await open(program.url, endless.body, { key: 'ann', path: endless.path })
  await left.until('data:')
  left.abort()
}

async function settledRows(): Promise<Row[]> {
  let found: Row[] = []
  await eventually(async () => {
    const { data } = await manage<{ items: Row[] }>(program.url, ADMIN, 'GET /api/log/?page_size=100')
    found = data.items
    return found.length >= CALLS
  }, 'a row for each call')
  return found
}

async function usageTotals(): Promise<typeof totals> {
  const now = Math.floor(Date.now() / 1000)
  const path = `GET /api/usage?start_timestamp=${now - 7_200}&end_timestamp=${now + 3_600}&step=hour` as const
  const { data } = await manage<{ totals: typeof totals }>(program.url, ADMIN, path)
  return data.totals
}

const sum = (numbers: readonly unknown[]): number =>
  numbers.reduce<number>((all, one) => all + Number(one ?? 0), 0)
const ofSpans = (name: string): number => sum(callSpans().map(({ attributes }) => attributes[name]))
const ofPoints = (name: string): number =>
  sum(points.filter(({ metric }) => metric === name).map(({ value }) => value))
const callSpans = (): Span[] => spans.filter(({ attributes }) => 'gen_ai.operation.name' in attributes)

describe('the sums of spans, metrics, rows and usage agree', () => {
  test('each row of the usage log has one exported span, and each span of a call has a row', () => {
    expect(rows).toHaveLength(CALLS)
    const ids = callSpans().map(({ attributes }) => textIn(attributes, 'sluice.request_id'))
    expect(ids).toHaveLength(CALLS)
    expect(new Set(ids)).toEqual(new Set(rows.map(({ request_id }) => request_id)))
  })

  test('the span of a call has the tokens, the charge and the duration of its usage row', () => {
    for (const row of rows) {
      const span = callSpans().find(({ attributes }) => attributes['sluice.request_id'] === row.request_id)
      expect(span?.attributes, row.kind).toMatchObject({
        'gen_ai.usage.input_tokens': row.prompt_tokens,
        'gen_ai.usage.output_tokens': row.completion_tokens,
        'gen_ai.usage.cost.amount': row.quota / QUOTA_PER_UNIT,
        'sluice.quota': row.quota,
        'sluice.settlement': row.reason,
        'sluice.endpoint': row.kind,
      })
      expect(span?.attributes['gen_ai.usage.cache_read.input_tokens'] ?? 0).toBe(row.cached_tokens)
      expect(span?.attributes['gen_ai.request.stream'] ?? false).toBe(row.is_stream)
      expect(span?.durationMs).toBe(row.duration_ms)
    }
  })

  test('the span of a call that is answered from the cache has its charge, no tokens and no attempts', () => {
    const [hit, ...others] = callSpans().filter(({ attributes }) => attributes['sluice.cache'] === 'hit')
    expect(others).toEqual([])
    expect(hit?.attributes).toMatchObject({
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'texts',
      'gen_ai.request.stream': true,
      'gen_ai.usage.input_tokens': 0,
      'sluice.attempts': 0,
    })
    expect(Number(hit?.attributes['sluice.quota'])).toBeGreaterThan(0)
  })

  test('the tokens of spans, metrics, usage rows and usage totals have equal sums', () => {
    const input = sum(rows.map((row) => row.prompt_tokens))
    const output = sum(rows.map((row) => row.completion_tokens))
    const cached = sum(rows.map((row) => row.cached_tokens))
    expect(input).toBeGreaterThan(300)
    expect(cached).toBeGreaterThan(0)
    expect(ofSpans('gen_ai.usage.input_tokens')).toBe(input)
    expect(ofSpans('gen_ai.usage.output_tokens')).toBe(output)
    expect(ofSpans('gen_ai.usage.cache_read.input_tokens')).toBe(cached)
    expect(ofPoints('gen_ai.client.inference.usage.input_tokens')).toBe(input)
    expect(ofPoints('gen_ai.client.inference.usage.output_tokens')).toBe(output)
    expect(ofPoints('gen_ai.client.inference.usage.cache_read.input_tokens')).toBe(cached)
  })

  test('the charges of spans, metrics, usage rows and usage totals have equal sums', () => {
    const quota = sum(rows.map((row) => row.quota))
    expect(quota).toBeGreaterThan(0)
    expect(ofSpans('sluice.quota')).toBe(quota)
    expect(ofSpans('gen_ai.usage.cost.amount')).toBeCloseTo(quota / QUOTA_PER_UNIT, 12)
    expect(ofPoints('sluice.client.inference.cost')).toBeCloseTo(quota / QUOTA_PER_UNIT, 12)
    expect(totals.quota).toBe(quota)
  })

  test('the exported metrics of call durations have the count and the sum of the usage rows', () => {
    const durations = points.filter(({ metric }) => metric === 'gen_ai.client.inference.duration')
    expect(sum(durations.map(({ count }) => count))).toBe(CALLS)
    expect(sum(durations.map(({ value }) => value))).toBeCloseTo(
      sum(rows.map((row) => row.duration_ms)) / 1000,
      9,
    )
  })
})

describe('calls that do not end as they should', () => {
  const spanOf = (model: string): Span =>
    callSpans().find(({ attributes }) => attributes['gen_ai.request.model'] === model) as Span
  const attemptsOf = ({ spanId }: Span): Span[] =>
    spans.filter(({ parentSpanId }) => parentSpanId === spanId).toSorted((a, b) => a.startMs - b.startMs)

  test('the attempts of a call are child spans of the span of the call, in order, without usage', () => {
    const failing = spanOf('failing')
    const attempts = attemptsOf(failing)
    expect(attempts.map(({ attributes }) => attributes['sluice.channel'])).toEqual(['failing-0', 'failing-1'])
    expect(attempts.map(({ failed }) => failed)).toEqual([true, false])
    expect(failing).toMatchObject({ failed: false, attributes: { 'sluice.attempts': 2 } })
    const names = spans
      .filter(({ name }) => name === 'POST')
      .flatMap(({ attributes }) => Object.keys(attributes))
    expect(names.filter((name) => name.startsWith('gen_ai.'))).toEqual([])
  })

  test('the span of a call without an answer is an error with a charge of 0', () => {
    expect(spanOf('broke')).toMatchObject({
      failed: true,
      attributes: {
        'error.type': 'provider_failed',
        'gen_ai.usage.cost.amount': 0,
        'gen_ai.response.finish_reasons': ['error'],
      },
    })
    const failed = points.filter(({ attributes }) => attributes['error.type'] === 'provider_failed')
    expect(failed.map(({ metric, count }) => [metric, count])).toEqual([
      ['gen_ai.client.inference.duration', 1],
    ])
  })

  test('the span of a stream that its upstream broke off is an error with the charged usage', () => {
    const { failed, attributes } = spanOf('breaking')
    expect(failed).toBe(true)
    expect(attributes).toMatchObject({
      'error.type': 'provider_broken',
      'gen_ai.response.finish_reasons': ['error'],
    })
    expect(attributes['gen_ai.usage.output_tokens']).toBeGreaterThan(0)
  })

  test('the span of a stream that its client left is not an error', () => {
    const { failed, attributes } = spanOf('endless')
    expect(failed).toBe(false)
    expect(attributes).not.toHaveProperty('error.type')
    expect(attributes).toMatchObject({ 'sluice.settlement': 'client_gone' })
  })
})

describe('names by endpoint and dialect', () => {
  test.each([
    ['chat', 'chat'],
    ['messages', 'chat'],
    ['responses', 'chat'],
    ['gemini', 'generate_content'],
    ['completions', 'text_completion'],
    ['embeddings', 'embeddings'],
  ])('the span of a call of the endpoint %s has the operation name %s', (endpoint, operation) => {
    const own = callSpans().filter(({ attributes }) => attributes['sluice.endpoint'] === endpoint)
    expect(own.length).toBeGreaterThan(0)
    for (const { name, attributes } of own) {
      expect(attributes['gen_ai.operation.name']).toBe(operation)
      expect(name).toBe(`${operation} ${textIn(attributes, 'gen_ai.request.model')}`)
    }
  })

  test.each([
    ['of-chat', 'openai'],
    ['of-messages', 'anthropic'],
    ['of-responses', 'openai'],
    ['of-gemini', 'gcp.gemini'],
  ])(
    'the span of a call has the provider name of the dialect that its channel speaks: %s',
    (name, provider) => {
      const own = callSpans().filter(({ attributes }) => attributes['sluice.channel'] === name)
      expect(own.length).toBeGreaterThan(0)
      for (const { attributes } of own) expect(attributes['gen_ai.provider.name']).toBe(provider)
    },
  )

  test('the span of every answer, also a converted one, has the id, the model and the finish reason', () => {
    const answered = callSpans().filter(
      ({ attributes }) =>
        CONVERSATIONS.includes(textIn(attributes, 'gen_ai.request.model')) && !('sluice.cache' in attributes),
    )
    for (const { attributes } of answered) {
      const what = `${textIn(attributes, 'sluice.endpoint')} at ${textIn(attributes, 'sluice.channel')}`
      expect(attributes['gen_ai.response.id'], what).toMatch(/./)
      expect(attributes['gen_ai.response.model'], what).toMatch(/./)
      expect(attributes['gen_ai.response.finish_reasons'], what).toEqual([expect.stringMatching(/^\w+$/)])
      expect(attributes['gen_ai.response.finish_reasons'], what).not.toContain('error')
    }
  })
})

test('the exported metrics of the time to the first chunk and between chunks measure only streams', () => {
  const streams = rows.filter(({ is_stream }) => is_stream).length
  const first = points.filter(({ metric }) => metric === 'gen_ai.client.inference.time_to_first_chunk')
  expect(sum(first.map(({ count }) => count))).toBe(streams)
  const between = points.filter(({ metric }) => metric === 'gen_ai.client.inference.time_per_output_chunk')
  expect(sum(between.map(({ count }) => count))).toBeGreaterThan(streams)
})
