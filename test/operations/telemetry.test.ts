import process from 'node:process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import {
  ADMIN,
  ADMIN_USER,
  channel,
  type Configuration,
  priced,
  ROOT,
  token,
  user,
} from '../fixtures/configuration.ts'
import { freePort } from '../fixtures/port.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { ask, askStream } from '../fixtures/fixture.ts'
import { type Collector, type Span, startCollector } from '../fixtures/collector.ts'
import { discard, eventually, type Program, runProgram } from './program.ts'

const CANARIES = [
  'canaryprompt',
  'canaryanswer',
  'canarykey',
  'canaryupstreamkey',
  'canaryquery',
  'canaryheader',
]

/** Prints on standard error which modules of OpenTelemetry the process loads. */
const LOAD_RECORDER = `import { registerHooks } from 'node:module'
registerHooks({ load(url, context, next) {
  if (url.includes('opentelemetry')) process.stderr.write('loaded ' + url + '\\n')
  return next(url, context)
} })`

/** Runs the sources, because a bundle has no separate modules to record. */
const SOURCES = [process.execPath, 'src/cli/main.ts', 'start']

const recordLoads = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(LOAD_RECORDER)}` }

let upstream: ScriptedUpstream
let collector: Collector
let program: Program
let config: Configuration
beforeAll(async () => {
  ;[upstream, collector] = await Promise.all([startUpstream(), startCollector()])
  config = {
    models: priced(['m']),
    channels: [
      channel('main', upstream.baseUrl('main'), {
        models: ['m'],
        model_mapping: { m: 'm-2030' },
        keys: ['canaryupstreamkey'],
      }),
    ],
    users: [ROOT, user(2, 'ann', [token('canarykey')]), ADMIN_USER],
  }
  program = await runProgram({
    config,
    command: SOURCES,
    env: {
      ...recordLoads,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      // An export that is late is lost, and this machine may be busy.
      OTEL_EXPORTER_OTLP_TIMEOUT: '60000',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    },
  })
  await program.ready()
})
afterAll(async () => {
  await discard(program)
  await Promise.all([collector?.stop(), upstream?.stop()])
})

const chat = (body: object, headers: Record<string, string> = {}): ReturnType<typeof call> =>
  call(program.url, body, { key: 'canarykey', path: '/v1/chat/completions?x=canaryquery', headers })

/** The only span of a request, by the request's id. Attempts have no id. */
async function spanOf(id: unknown): Promise<Span> {
  const own = (): Span[] =>
    collector.spans().filter(({ attributes }) => attributes['sluice.request_id'] === id)
  await eventually(() => own().length > 0, 'a span')
  expect(own()).toHaveLength(1)
  return own()[0] as Span
}

/** The row of a call in the usage log. */
async function rowOf(id: unknown): Promise<Record<string, unknown>> {
  const path = `GET /api/log/?request_id=${String(id)}` as const
  const { data } = await manage<{ items: Record<string, unknown>[] }>(program.url, ADMIN, path)
  expect(data.items).toHaveLength(1)
  return data.items[0] as Record<string, unknown>
}

const attemptsOf = ({ spanId }: Span): Span[] =>
  collector.spans().filter(({ parentSpanId }) => parentSpanId === spanId)

describe('traces with an exporter configured', () => {
  test("a call is exported as one CLIENT span with the attributes of OpenTelemetry's conventions for generative AI", async () => {
    upstream.script('main', { kind: 'stream', events: 4, paceMs: 40, usage: usageText(21, 4, 5) })
    const answer = await chat(askStream('m', { temperature: 0.5, max_tokens: 50, seed: 7 }), {
      'x-session-id': 'ticket-4711',
    })
    const span = await spanOf(answer.headers['x-request-id'])
    expect(span).toMatchObject({ name: 'chat m', kind: 3, parentSpanId: '', failed: false })
    expect(span.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'm',
      'gen_ai.request.stream': true,
      'gen_ai.request.temperature': 0.5,
      'gen_ai.request.max_tokens': 50,
      'gen_ai.request.seed': 7,
      'gen_ai.conversation.id': 'ticket-4711',
      'gen_ai.response.model': 'upstream-model',
      'sluice.upstream_model': 'm-2030',
      'gen_ai.response.finish_reasons': ['stop'],
      'gen_ai.usage.input_tokens': 21,
      'gen_ai.usage.cache_read.input_tokens': 5,
      'gen_ai.usage.output_tokens': 4,
      'gen_ai.usage.cost.currency': 'USD',
      'server.address': '127.0.0.1',
      'server.port': upstream.port,
      'user.id': '2',
      'sluice.endpoint': 'chat',
      'sluice.channel': 'main',
      'sluice.settlement': 'complete',
    })
    expect(span.attributes).not.toHaveProperty('error.type')
    expect(span.durationMs).toBeGreaterThanOrEqual(160)
    expect(span.durationMs).toBeLessThan(60_000)
    expect(span.attributes['gen_ai.response.id']).toMatch(/./)
    expect(span.attributes['gen_ai.response.time_to_first_chunk']).toBeGreaterThan(0)
    const row = await rowOf(answer.headers['x-request-id'])
    expect(span.attributes).toMatchObject({
      'sluice.quota': row['quota'],
      'gen_ai.usage.cost.amount': Number(row['quota']) / 500_000,
    })
    expect(span.resource).toMatchObject({ 'service.name': 'sluice', 'deployment.environment.name': 'test' })
  })

  test('requests for /readyz, /healthz and /metrics are not traced', async () => {
    for (const path of ['/readyz', '/healthz', '/metrics'])
      expect((await call(program.url, undefined, { method: 'GET', path })).status).toBe(200)
    // Spans are sent in the order in which their requests end.
    const last = await call(program.url, undefined, { method: 'GET', path: '/v1/models', key: 'canarykey' })
    await spanOf(last.headers['x-request-id'])
    const routes = collector.spans().map(({ attributes }) => attributes['http.route'])
    for (const path of ['/readyz', '/healthz', '/metrics']) expect(routes).not.toContain(path)
  })

  test("a client's traceparent becomes the parent of the call's span, unless it is invalid", async () => {
    upstream.script('main', { kind: 'whole' })
    const [traceId, parent] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']
    const traced = await chat(ask('m'), { traceparent: `00-${traceId}-${parent}-01` })
    const wrong = ['nonsense', `00-${'0'.repeat(32)}-${parent}-01`, `00-${traceId}-${parent}`]
    const others = await Promise.all(wrong.map((traceparent) => chat(ask('m'), { traceparent })))
    expect(await spanOf(traced.headers['x-request-id'])).toMatchObject({ traceId, parentSpanId: parent })
    for (const untraced of others) {
      const span = await spanOf(untraced.headers['x-request-id'])
      expect(span.parentSpanId).toBe('')
      expect(span.traceId).not.toBe(traceId)
    }
  })

  test('the span of a failed call has its error type, and is an error if the upstream failed', async () => {
    const refused = await call(program.url, ask('m'), { key: 'nobody' })
    const lost = await call(program.url, undefined, { method: 'GET', path: '/canaryquery' })
    upstream.script('main', { kind: 'status', status: 500 })
    const broken = await chat(ask('m'))
    const span = await spanOf(refused.headers['x-request-id'])
    expect(span).toMatchObject({ name: 'POST /v1/chat/completions', kind: 2, failed: false })
    expect(span.attributes).toMatchObject({
      'http.response.status_code': 401,
      'error.type': 'invalid_api_key',
    })
    const failed = await spanOf(broken.headers['x-request-id'])
    expect(failed).toMatchObject({ name: 'chat m', failed: true })
    expect(failed.attributes).toMatchObject({ 'error.type': 'provider_failed', 'sluice.quota': 0 })
    const [attempt, ...more] = attemptsOf(failed)
    expect(more).toEqual([])
    expect(attempt).toMatchObject({ name: 'POST', kind: 3, failed: true, traceId: failed.traceId })
    expect(attempt?.attributes).toMatchObject({ 'http.response.status_code': 500, 'sluice.channel': 'main' })
    expect((await spanOf(lost.headers['x-request-id'])).name).toBe('GET unknown')
  })

  test('exported spans contain no prompt, response, key, query or header', async () => {
    upstream.script('main', { kind: 'whole', content: 'canaryanswer' })
    const body = { model: 'm', messages: [{ role: 'user', content: 'canaryprompt' }], user: 'canaryprompt' }
    const { headers } = await chat(body, { tracestate: 'x=canaryheader', baggage: 'x=canaryheader' })
    await spanOf(headers['x-request-id'])
    for (const canary of CANARIES) expect(collector.raw()).not.toContain(canary)
  })

  test('collected spans are sent when the gateway stops', async () => {
    const before = collector.spans().length
    upstream.script('main', { kind: 'whole' })
    await Promise.all(Array.from({ length: 20 }, () => chat(ask('m'))))
    program.kill('SIGTERM')
    expect((await program.exit).code).toBe(0)
    const own = collector.spans().slice(before)
    expect(own.filter(({ name }) => name === 'chat m')).toHaveLength(20)
    expect(own.filter(({ name }) => name === 'POST')).toHaveLength(20)
    expect(program.err()).toContain('loaded file:')
  })
})

test('while the telemetry collector is unreachable, the gateway answers calls and stops soon, and only traces are lost', async () => {
  upstream.script('main', { kind: 'whole' })
  const results = new Set<number | null>()
  /** Makes a call and a stop. Returns the milliseconds that the stop took. */
  const timeOfStop = async (): Promise<number> => {
    const lonely = await runProgram({
      config,
      env: { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://127.0.0.1:${await freePort()}/v1/traces` },
    })
    try {
      await lonely.ready()
      results.add((await call(lonely.url, ask('m'), { key: 'canarykey' })).status)
      const asked = performance.now()
      lonely.kill('SIGTERM')
      const { code, at } = await lonely.exit
      results.add(code)
      return at - asked
    } finally {
      await discard(lonely)
    }
  }
  // The exporter's own timeout would delay each stop; a busy machine delays one of them.
  await expect.poll(timeOfStop).toBeLessThan(9_000)
  expect(results).toEqual(new Set([200, 0]))
})

test('a gateway without a telemetry exporter loads no code of OpenTelemetry', async () => {
  const plain = await runProgram({ config, command: SOURCES, env: recordLoads })
  try {
    await plain.ready()
    expect((await call(plain.url, ask('m'), { key: 'canarykey' })).status).toBe(200)
    expect(plain.err()).toBe('')
  } finally {
    await discard(plain)
  }
})
