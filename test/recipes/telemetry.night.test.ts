import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { type Collector, type Span, startCollector, textIn } from '../fixtures/collector.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { ask, askStream } from '../fixtures/fixture.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import { discard, eventually, runProgram } from '../operations/program.ts'
import { addedCode, codeBlocks } from './recipe.ts'

/** The variables of a block of the page. */
const variablesIn = (block: string): Record<string, string> =>
  Object.fromEntries(
    block
      .trim()
      .split('\n')
      .map((line): [string, string] => {
        const [name = '', ...value] = line.trim().split('=')
        return [name, value.join('=')]
      }),
  )

/** Runs a gateway with these variables, makes calls that answer, stream and fail, and stops it. */
async function callsWith(env: Record<string, string>): Promise<void> {
  const upstream = await startUpstream()
  onTestFinished(() => upstream.stop())
  upstream.decide('m', ({ text }) => {
    if (text.includes('fail')) return { kind: 'status', status: 500 }
    const usage = usageText(40, 6, 30)
    return text.includes('"stream":true') ? { kind: 'stream', usage, paceMs: 2 } : { kind: 'whole', usage }
  })
  const program = await runProgram({
    config: plainConfiguration(upstream.baseUrl('m')),
    // An export that is late is lost, and this machine may be busy.
    env: { OTEL_EXPORTER_OTLP_TIMEOUT: '60000', ...env },
  })
  onTestFinished(() => discard(program))
  await program.ready()
  const headers = { 'x-session-id': 'ticket-4711' }
  for (const body of [
    ask('m', { temperature: 0.5, max_tokens: 50 }),
    askStream('m'),
    ask('m', { messages: [{ role: 'user', content: 'fail' }] }),
  ])
    await call(program.url, body, { key: 'ann', headers })
  program.kill('SIGTERM')
  expect((await program.exit).code).toBe(0)
}

const isCall = ({ attributes }: Span): boolean => 'gen_ai.operation.name' in attributes

describe('calls in Langfuse', () => {
  const page = 'guides/telemetry-to-langfuse'
  let collector: Collector
  let spans: Span[]

  beforeAll(async () => {
    collector = await startCollector('/api/public/otel')
  })

  test('the variables in the Langfuse guide send only traces, to the documented path, with the key', async () => {
    onTestFinished(() => collector.stop())
    const variables = variablesIn(addedCode(page, 'ini'))
    const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: address = '' } = variables
    expect(new URL(address).pathname).toBe('/api/public/otel/v1/traces')
    await callsWith({
      ...variables,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: address.replace(
        'https://cloud.langfuse.com/api/public/otel',
        collector.url,
      ),
    })
    expect(collector.exports.map(({ path }) => path)).not.toContain('/v1/metrics')
    const pair = /'%s' "([^"]+)"/.exec(addedCode(page, 'text'))?.[1] ?? ''
    const authorization = `Basic ${Buffer.from(pair).toString('base64')}`
    for (const { headers } of collector.exports)
      expect(headers).toMatchObject({ authorization, 'content-type': 'application/x-protobuf' })
    spans = collector.spans()
  })

  // What langfuse/langfuse reads (packages/shared/src/server/otel at commit 769752ae43e42e53aea566f09a074f50a088cec7):
  // the type of an observation by the operation, else by a model; usage and cost by its own attributes, else every
  // number below gen_ai.usage; the session and the user by the first of several names.
  test('the span of a call has the attributes that Langfuse reads for type, model, usage, cost, session and user', () => {
    const [whole] = spans.filter(isCall) as [Span]
    const { attributes } = whole
    expect(['chat', 'text_completion', 'generate_content', 'embeddings']).toContain(
      attributes['gen_ai.operation.name'],
    )
    expect(attributes['gen_ai.response.model']).toMatch(/./)
    expect(attributes['gen_ai.conversation.id']).toBe('ticket-4711')
    expect(attributes['user.id']).toBe('2')
    expect(JSON.parse(textIn(attributes, 'langfuse.observation.usage_details'))).toEqual({
      input: 10,
      input_cached_tokens: 30,
      output: 6,
      total: 46,
    })
    expect(JSON.parse(textIn(attributes, 'langfuse.observation.cost_details'))).toEqual({
      total: attributes['gen_ai.usage.cost.amount'],
    })
    expect(whole.resource['deployment.environment.name']).toBe('production')
  })

  test('the spans of attempts and of HTTP requests lack the attributes that make Langfuse show a model call', () => {
    const others = spans.filter((span) => !isCall(span))
    expect(others.length).toBeGreaterThan(0)
    const makesGeneration = /^(?:gen_ai\.|langfuse\.|llm\.|openinference\.|ai\.|model$)/
    for (const { attributes } of others)
      expect(Object.keys(attributes).filter((name) => makesGeneration.test(name))).toEqual([])
  })

  test('the span of a failed call has the error status that Langfuse shows as its level', () => {
    expect(spans.filter(isCall).map(({ failed }) => failed)).toEqual([false, false, true])
  })

  // What Arize-ai/phoenix reads (src/phoenix/trace/gen_ai/conversion.py at commit 10c483a01064febb912e3503eac7e21d64f1bb39).
  test('the span of a call has the attributes that Phoenix reads for provider, model, session, parameters and usage', () => {
    const [{ attributes }, { attributes: streamed }] = spans.filter(isCall) as [Span, Span]
    expect(attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.conversation.id': 'ticket-4711',
      'gen_ai.request.model': 'm',
      'gen_ai.request.temperature': 0.5,
      'gen_ai.request.max_tokens': 50,
      'gen_ai.usage.input_tokens': 40,
      'gen_ai.usage.output_tokens': 6,
      'gen_ai.usage.cache_read.input_tokens': 30,
      'gen_ai.response.finish_reasons': ['stop'],
      'gen_ai.response.id': expect.stringMatching(/./),
      'gen_ai.response.model': expect.stringMatching(/./),
    })
    expect(streamed['gen_ai.request.stream']).toBe(true)
  })
})

describe('calls in Grafana', () => {
  const page = 'guides/telemetry-to-grafana'

  test('the variables in the Grafana guide send to the address at which its collector listens', () => {
    const [own = '', prometheus = ''] = codeBlocks(page, 'ini')
    const { receivers } = parse(addedCode(page, 'yaml')) as {
      receivers: { otlp: { protocols: { http: { endpoint: string } } } }
    }
    expect(variablesIn(own)['OTEL_EXPORTER_OTLP_ENDPOINT']).toBe(
      `http://${receivers.otlp.protocols.http.endpoint}`,
    )
    expect(Object.keys(variablesIn(prometheus))).toEqual(['OTEL_EXPORTER_OTLP_METRICS_ENDPOINT'])
  })

  test('each metric and each label in the queries of the guide is exported by the gateway', async () => {
    const collector = await startCollector()
    onTestFinished(() => collector.stop())
    const [own = ''] = codeBlocks(page, 'ini')
    await callsWith({ ...variablesIn(own), OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
    await eventually(() => collector.points().length > 0, 'metrics')
    const points = collector.points()
    const exported = new Set(points.flatMap(prometheusNames))
    const labels = new Set(points.flatMap(({ attributes }) => Object.keys(attributes).map(underscored)))
    const text = readFileSync(join(import.meta.dirname, '../../docs', `${page}.md`), 'utf8')
    const queries = [...text.matchAll(/\| `(.+)` \|$/gm)].map(([, query = '']) => query)
    expect(queries).toHaveLength(5)
    const inQueries = queries.flatMap((query) => query.match(/\b(?:gen_ai|sluice|error|le)\w*/g) ?? [])
    for (const name of inQueries) expect([...exported, ...labels, 'le'], name).toContain(name)
    const spanNames = [...text.matchAll(/span\.([\w.]+)/g)].map(([, name = '']) => name)
    expect(spanNames).toHaveLength(2)
    for (const name of spanNames)
      expect(Object.keys(collector.spans().find(isCall)?.attributes ?? {})).toContain(name)
  })
})

const underscored = (name: string): string => name.replaceAll('.', '_')

/** The names of a metric in Prometheus: `docs/guides/telemetry-to-grafana.md`, queries. */
function prometheusNames({
  metric,
  unit,
  count,
}: {
  metric: string
  unit: string
  count: number | undefined
}): string[] {
  const name = underscored(metric)
  // Units in braces are annotations, which Prometheus leaves out.
  const suffix = unit === 's' ? '_seconds' : ''
  return count === undefined
    ? [`${name}${suffix}_total`]
    : ['bucket', 'sum', 'count'].map((kind) => `${name}${suffix}_${kind}`)
}
