import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { type Collector, type Point, type Span, startCollector, textIn } from '../fixtures/collector.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream } from '../fixtures/fixture.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { storingUpstream } from '../fixtures/stored-responses.ts'
import { metricsOf } from '../operations/metrics-text.ts'
import { discard, eventually, type Program, runProgram } from '../operations/program.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: 'root-access-token' }

/** A signal as `GET /api/telemetry/` shows it. */
interface Shown {
  readonly signal: string
  readonly host: string
  readonly sent: number
  readonly failed: number
  readonly dropped: number
  readonly last_sent_at: number | null
  readonly last_error: string | null
}

let upstream: ScriptedUpstream
beforeAll(async () => {
  upstream = await startUpstream()
  upstream.decide('m', ({ text }) => {
    const usage = usageText(40, 6)
    return text.includes('"stream":true') ? { kind: 'stream', usage } : { kind: 'whole', usage }
  })
})
afterAll(() => upstream?.stop())

const configuration = (): Configuration => ({
  models: priced(['m']),
  channels: [channel('m', upstream.baseUrl('m'))],
  users: [ROOT, user(2, 'ann', [token('ann')])],
})

async function run(env: Record<string, string>): Promise<Program> {
  const program = await runProgram({ config: configuration(), env })
  onTestFinished(() => discard(program))
  await program.ready()
  return program
}

async function collect(): Promise<Collector> {
  const collector = await startCollector()
  onTestFinished(() => collector.stop())
  return collector
}

async function stop(program: Program): Promise<void> {
  program.kill('SIGTERM')
  expect((await program.exit).code).toBe(0)
}

const chat = (program: Program, body: object = ask('m'), headers: Record<string, string> = {}) =>
  call(program.url, body, { key: 'ann', headers })

async function many(program: Program, count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) expect((await chat(program)).status).toBe(200)
}

async function shown(program: Program): Promise<Readonly<Record<string, Shown>>> {
  const { data } = await manage<Shown[]>(program.url, ROOT_ACCOUNT, 'GET /api/telemetry/')
  return Object.fromEntries(data.map((one) => [one.signal, one]))
}

const calls = (collector: Collector): Span[] =>
  collector.spans().filter(({ attributes }) => 'gen_ai.operation.name' in attributes)
const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0)
const inputOf = (points: readonly Point[]): number =>
  sum(
    points
      .filter(({ metric }) => metric === 'gen_ai.client.inference.usage.input_tokens')
      .map(({ value }) => value),
  )

describe('the variables of OpenTelemetry', () => {
  test('the OTEL_ variables set the format, compression, headers, service name and attributes of exports', async () => {
    const collector = await collect()
    const program = await run({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=acme',
      OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'http/protobuf',
      OTEL_SERVICE_NAME: 'front',
      OTEL_RESOURCE_ATTRIBUTES: 'team=blue',
    })
    await many(program, 2)
    await stop(program)
    const types = collector.exports.map(({ path, headers }) => `${path} ${String(headers['content-type'])}`)
    expect(new Set(types)).toEqual(
      new Set(['/v1/traces application/json', '/v1/metrics application/x-protobuf']),
    )
    for (const { headers } of collector.exports)
      expect(headers).toMatchObject({ 'content-encoding': 'gzip', 'x-tenant': 'acme' })
    expect(calls(collector)).toHaveLength(2)
    expect(calls(collector)[0]?.resource).toMatchObject({ 'service.name': 'front', team: 'blue' })
    expect(inputOf(collector.points())).toBe(80)
  })

  test('OTEL_TRACES_SAMPLER=always_off stops traces, and metrics still count every call', async () => {
    const collector = await collect()
    const program = await run({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_TRACES_SAMPLER: 'always_off',
    })
    await many(program, 3)
    await stop(program)
    expect(collector.spans()).toEqual([])
    expect(inputOf(collector.points())).toBe(120)
  })

  test('an OTEL_ variable with an unknown value is reported, and the gateway starts', async () => {
    const collector = await collect()
    const program = await run({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      LOG_LEVEL: 'warn',
    })
    await eventually(() => program.log().length > 0, 'a warning')
    expect(program.log()).toMatchObject([
      { variable: 'OTEL_EXPORTER_OTLP_PROTOCOL', expected: 'http/protobuf or http/json' },
    ])
  })
})

test("a client's traceparent decides whether a call is traced, and the spans of call and attempts belong to the client's trace", async () => {
  const collector = await collect()
  const program = await run({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
  await chat(program, ask('m'), { traceparent: `00-${trace}-00f067aa0ba902b7-01` })
  await chat(program, ask('m'), { traceparent: `00-${'a'.repeat(32)}-00f067aa0ba902b7-00` })
  await stop(program)
  const spans = collector.spans().filter(({ name }) => !name.startsWith('GET '))
  expect(
    spans.map(({ name, traceId }) => [name, traceId]).toSorted(([a = ''], [b = '']) => a.localeCompare(b)),
  ).toEqual([
    ['chat m', trace],
    ['POST', trace],
  ])
})

describe('a collector that does not take what is sent', () => {
  test('telemetry exports that a collector refuses are counted, shown and logged once a minute, and calls continue', async () => {
    const collector = await collect()
    collector.answer(401)
    const program = await run({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_METRIC_EXPORT_INTERVAL: '100',
    })
    await many(program, 5)
    await eventually(async () => (await shown(program))['metrics']?.last_error === 'status 401', 'an error')
    await eventually(async () => ((await shown(program))['traces']?.failed ?? 0) >= 10, 'spans that failed')
    const { traces } = await shown(program)
    expect(traces).toMatchObject({
      host: new URL(collector.url).host,
      sent: 0,
      dropped: 0,
      last_sent_at: null,
      last_error: 'status 401',
    })
    const warnings = program.log().filter(({ msg }) => msg === 'telemetry could not be sent')
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatchObject({ cause: 'status 401' })
    const page = await metricsOf(program.url)
    const labels = { signal: 'traces', result: 'failed' }
    expect(page.sum('sluice_telemetry_exported_total', labels)).toBeGreaterThanOrEqual(10)

    collector.answer(200)
    await many(program, 1)
    await eventually(async () => (await shown(program))['traces']?.last_error === null, 'success')
    expect((await shown(program))['traces']?.sent).toBeGreaterThan(0)
  })

  test('while a telemetry collector hangs, spans beyond the queue are dropped and counted, and calls do not wait', async () => {
    const collector = await collect()
    collector.hang()
    const program = await run({
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
      OTEL_BSP_MAX_QUEUE_SIZE: '20',
      OTEL_BSP_SCHEDULE_DELAY: '20',
      OTEL_EXPORTER_OTLP_TIMEOUT: '500',
    })
    await many(program, 60)
    await eventually(async () => {
      const { traces } = await shown(program)
      return (traces?.failed ?? 0) > 0 && (traces?.dropped ?? 0) > 0
    }, 'dropped spans')
    // Calls that waited for the collector would not end.
    await many(program, 20)
  })
})

test('a background response is one span with its final usage, in the trace of its request', async () => {
  const provider = storingUpstream('later')
  upstream.decide('later', (received) => provider.decision(received))
  const collector = await collect()
  const program = await runProgram({
    config: {
      ...configuration(),
      channels: [channel('later', upstream.baseUrl('later'), { models: ['m'], protocol: 'responses' })],
    },
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
  })
  onTestFinished(() => discard(program))
  await program.ready()
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
  const begun = await call(
    program.url,
    { model: 'm', input: 'hi', background: true },
    { key: 'ann', path: '/v1/responses', headers: { traceparent: `00-${trace}-00f067aa0ba902b7-01` } },
  )
  expect(begun.status).toBe(200)
  provider.backgroundStatus = 'completed'
  const { id } = begun.json() as unknown as { id: string }
  const ended = await call(program.url, undefined, { method: 'GET', path: `/v1/responses/${id}`, key: 'ann' })
  expect(ended.json()).toMatchObject({ status: 'completed' })
  await stop(program)
  const [span, ...more] = calls(collector)
  expect(more).toEqual([])
  expect(span).toMatchObject({
    traceId: trace,
    attributes: {
      'gen_ai.usage.input_tokens': 100,
      'gen_ai.usage.output_tokens': 50,
      'sluice.request_id': begun.headers['x-request-id'],
    },
  })
  expect(inputOf(collector.points())).toBe(100)
})

test('two workers export each call once, under separate instance ids', async () => {
  const collector = await collect()
  const program = await run({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_RESOURCE_ATTRIBUTES: 'service.instance.id=node-1',
    WORKERS: '2',
  })
  const answers = await Promise.all(Array.from({ length: 40 }, () => chat(program)))
  await stop(program)
  const ids = calls(collector).map(({ attributes }) => textIn(attributes, 'sluice.request_id'))
  expect(ids).toHaveLength(40)
  expect(new Set(ids)).toEqual(new Set(answers.map(({ headers }) => headers['x-request-id'])))
  const points = collector.points()
  expect(inputOf(points)).toBe(1_600)
  const instances = new Set(calls(collector).map(({ resource }) => textIn(resource, 'service.instance.id')))
  expect(instances.size).toBe(2)
  for (const instance of instances) expect(instance).toMatch(/^node-1-\d+$/)
})

test('the spans of running streams are exported with their charge when the gateway stops', async () => {
  const collector = await collect()
  const program = await run({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
  const streams = Array.from({ length: 5 }, () => chat(program, askStream('m')))
  await sleep(5)
  program.kill('SIGTERM')
  const answers = await Promise.allSettled(streams)
  expect((await program.exit).code).toBe(0)
  const served = answers.filter(({ status }) => status === 'fulfilled').length
  expect(calls(collector).length).toBeGreaterThanOrEqual(served)
})

test('the list of telemetry exports is empty without a collector, and only root may read it', async () => {
  const program = await run({})
  expect(await shown(program)).toEqual({})
  const { status } = await call(program.url, undefined, {
    method: 'GET',
    path: '/api/telemetry/',
    key: 'ann',
  })
  expect(status).toBe(401)
})
