import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { completionText, usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { type Collector, type Span, startCollector, textIn } from '../fixtures/collector.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { discard, type Program, runProgram } from './program.ts'

const CAPTURE = { OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true' }
/** Attributes that have what was said. */
const SAID = [
  'gen_ai.system_instructions',
  'gen_ai.input.messages',
  'gen_ai.output.messages',
  'gen_ai.tool.definitions',
] as const

const SCHEMA = { type: 'object', properties: { city: { type: 'string' } } }
const ARGUMENTS = { city: 'Paris' }

let upstream: ScriptedUpstream
beforeAll(async () => {
  upstream = await startUpstream()
  upstream.decide('m', ({ text }) =>
    text.includes('"stream":true')
      ? { kind: 'stream', events: 3, word: 'canaryanswer ' }
      : { kind: 'whole', body: completionText('canaryanswer', usageText(40, 6)) },
  )
})
afterAll(() => upstream?.stop())

/** Runs a gateway, makes the calls of the work, stops it, and returns its spans of calls by their request id. */
async function traced(
  what: string,
  env: Record<string, string>,
  work: (say: (path: string, body: object, key?: string) => Promise<string>) => Promise<void>,
  more: Configuration = {},
): Promise<{ readonly collector: Collector; readonly spanOf: (id: string) => Span }> {
  const collector = await startCollector()
  const config: Configuration = {
    content_log: { what },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann'), token('less', { content_log: { what: 'metadata' } })])],
    ...more,
  }
  let program: Program | undefined
  try {
    program = await runProgram({ config, env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...env } })
    await program.ready()
    const { url } = program
    await work(async (path, body, key = 'ann') => {
      const { headers } = await call(url, body, { key, path })
      return String(headers['x-request-id'])
    })
    program.kill('SIGTERM')
    await program.exit
  } finally {
    if (program) await discard(program)
    await collector.stop()
  }
  const spanOf = (id: string): Span => {
    const own = collector.spans().filter(({ attributes }) => attributes['sluice.request_id'] === id)
    if (own.length !== 1) throw new Error(`${own.length} spans of ${id}`)
    return own[0] as Span
  }
  return { collector, spanOf }
}

const HELLO = { model: 'm', messages: [{ role: 'user', content: 'canaryprompt' }] }

describe('texts are exported only if they are kept, and if the variable says so', () => {
  test.each<[string, string, Record<string, string>, string]>([
    ['nothing is kept', 'none', CAPTURE, 'ann'],
    ['only metadata are kept', 'metadata', CAPTURE, 'ann'],
    ['the key lessens it', 'full', CAPTURE, 'less'],
    ['the variable is not set', 'full', {}, 'ann'],
  ])('prompt and answer of a call are not exported to telemetry if %s', async (_, what, env, key) => {
    let id = ''
    const { collector, spanOf } = await traced(what, env, async (say) => {
      id = await say('/v1/chat/completions', HELLO, key)
    })
    expect(collector.raw()).not.toMatch(/canary/)
    const { attributes } = spanOf(id)
    for (const name of SAID) expect(attributes).not.toHaveProperty([name])
  })
})

describe('an event for each call whose content is exported', () => {
  const LOGS = { ...CAPTURE, OTEL_LOGS_EXPORTER: 'otlp' }

  test.each(['http/json', 'http/protobuf'])(
    "the OpenTelemetry event with a call's prompt and answer belongs to the trace of the call's span, over %s",
    async (protocol) => {
      let [full, less] = ['', '']
      const env = { ...LOGS, OTEL_EXPORTER_OTLP_PROTOCOL: protocol }
      const { collector, spanOf } = await traced('full', env, async (say) => {
        full = await say('/v1/chat/completions', HELLO)
        less = await say('/v1/chat/completions', HELLO, 'less')
      })
      const events = collector.events()
      expect(events.map(({ attributes }) => attributes['sluice.request_id'])).toEqual([full])
      const [event] = events
      const span = spanOf(full)
      expect(event).toMatchObject({ traceId: span.traceId, spanId: span.spanId, severity: 5 })
      if (protocol === 'http/json') expect(event?.name).toBe('gen_ai.client.inference.operation.details')
      expect(event?.attributes).toMatchObject({
        'gen_ai.operation.name': 'chat',
        'gen_ai.request.model': 'm',
        'gen_ai.usage.input_tokens': 40,
        'gen_ai.input.messages': [{ role: 'user', parts: [{ type: 'text', content: 'canaryprompt' }] }],
        'gen_ai.output.messages': [{ role: 'assistant', parts: [{ type: 'text', content: 'canaryanswer' }] }],
      })
      expect(Object.keys(event?.attributes ?? {}).join()).not.toMatch(/langfuse|sluice\.quota|user\.id/)
      expect(spanOf(less).attributes).not.toHaveProperty(['gen_ai.input.messages'])
    },
  )

  test("a call's texts are exported in no OpenTelemetry event without a log exporter, or if the call is not sampled", async () => {
    for (const env of [CAPTURE, { ...LOGS, OTEL_TRACES_SAMPLER: 'always_off' }]) {
      const { collector } = await traced('full', env, async (say) => {
        await say('/v1/chat/completions', HELLO)
      })
      expect(collector.events()).toEqual([])
      expect(collector.points().length).toBeGreaterThan(0)
    }
  })

  test("a call's texts are exported in an OpenTelemetry event without a span if only the logs endpoint is set", async () => {
    let id = ''
    const collector = await startCollector()
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: '',
      OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: `${collector.url}/v1/logs`,
    }
    await traced('redacted', { ...CAPTURE, ...env }, async (say) => {
      id = await say('/v1/chat/completions', HELLO)
    })
    await collector.stop()
    expect(collector.events()).toMatchObject([{ traceId: '', attributes: { 'sluice.request_id': id } }])
    expect(collector.spans()).toEqual([])
  })
})

test('a hit of the answer cache is exported as one span without tokens, with the texts of the call', async () => {
  const ids: string[] = []
  const work = async (say: (path: string, body: object) => Promise<string>): Promise<void> => {
    for (let time = 0; time < 2; time += 1) ids.push(await say('/v1/chat/completions', HELLO))
  }
  const { spanOf } = await traced('full', CAPTURE, work, { options: { cache: { ttl: '1h' } } })
  const [call, hit] = ids.map((id) => spanOf(id))
  expect(call?.attributes).toMatchObject({ 'gen_ai.usage.input_tokens': 40, 'sluice.attempts': 1 })
  expect(hit?.name).toBe('chat m')
  expect(hit?.attributes).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.usage.input_tokens': 0,
    'gen_ai.usage.output_tokens': 0,
    'sluice.cache': 'hit',
    'sluice.quota': 0,
    'sluice.attempts': 0,
  })
  for (const { attributes } of [call, hit] as Span[])
    expect(textIn(attributes, 'gen_ai.output.messages')).toContain('canaryanswer')
})

test('at content level redacted no secrets or personal data are exported in telemetry, whole or streamed', async () => {
  const ids: string[] = []
  const messages = [{ role: 'user', content: 'canaryprompt of ann@example.com' }]
  const { collector, spanOf } = await traced('redacted', CAPTURE, async (say) => {
    for (const stream of [false, true])
      ids.push(await say('/v1/chat/completions', { model: 'm', messages, stream }))
  })
  expect(collector.raw()).not.toContain('ann@example.com')
  for (const id of ids) {
    const { attributes } = spanOf(id)
    expect(JSON.parse(textIn(attributes, 'gen_ai.input.messages'))).toEqual([
      { role: 'user', parts: [{ type: 'text', content: 'canaryprompt of [REDACTED]' }] },
    ])
    expect(textIn(attributes, 'gen_ai.output.messages')).toContain('canaryanswer')
  }
})

describe('what was said in calls whose content is kept in full', () => {
  const ids: Record<string, string> = {}
  let spanOf: (id: string) => Span
  beforeAll(async () => {
    ;({ spanOf } = await traced('full', CAPTURE, async (say) => {
      ids['chat'] = await say('/v1/chat/completions', {
        model: 'm',
        messages: [
          { role: 'system', content: 'Be short.' },
          { role: 'user', content: 'canaryprompt' },
          {
            role: 'assistant',
            content: null,
            tool_calls: [
              {
                id: 'call_1',
                type: 'function',
                function: { name: 'look', arguments: JSON.stringify(ARGUMENTS) },
              },
            ],
          },
          { role: 'tool', tool_call_id: 'call_1', content: 'rainy' },
        ],
        tools: [{ type: 'function', function: { name: 'look', description: 'Looks', parameters: SCHEMA } }],
      })
      ids['stream'] = await say('/v1/chat/completions', { ...HELLO, stream: true })
      ids['messages'] = await say('/v1/messages', {
        model: 'm',
        max_tokens: 20,
        system: 'Be short.',
        messages: [
          { role: 'user', content: 'canaryprompt' },
          {
            role: 'assistant',
            content: [{ type: 'tool_use', id: 'call_1', name: 'look', input: ARGUMENTS }],
          },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'rainy' }] },
        ],
        tools: [{ name: 'look', description: 'Looks', input_schema: SCHEMA }],
      })
      ids['messages stream'] = await say('/v1/messages', { ...HELLO, max_tokens: 20, stream: true })
      ids['responses'] = await say('/v1/responses', {
        model: 'm',
        instructions: 'Be short.',
        input: [{ role: 'user', content: 'canaryprompt' }],
      })
      ids['gemini'] = await say('/v1beta/models/m:generateContent', {
        systemInstruction: { parts: [{ text: 'Be short.' }] },
        contents: [{ role: 'user', parts: [{ text: 'canaryprompt' }] }],
      })
      ids['long'] = await say('/v1/chat/completions', {
        model: 'm',
        messages: [{ role: 'user', content: 'x'.repeat(1024 * 1024) }],
      })
      ids['embeddings'] = await say('/v1/embeddings', { model: 'm', input: 'canaryprompt' })
    }))
  })

  const said = (name: string, attribute: (typeof SAID)[number]): unknown => {
    const text = textIn(spanOf(ids[name] ?? '').attributes, attribute)
    return text === '' ? undefined : JSON.parse(text)
  }
  const QUESTION = { role: 'user', parts: [{ type: 'text', content: 'canaryprompt' }] }
  const STEP = [
    QUESTION,
    { role: 'assistant', parts: [{ type: 'tool_call', id: 'call_1', name: 'look', arguments: ARGUMENTS }] },
    { role: 'tool', parts: [{ type: 'tool_call_response', id: 'call_1', response: 'rainy' }] },
  ]
  const answer = (content: string, finish_reason: string): object => ({
    role: 'assistant',
    parts: [{ type: 'text', content }],
    finish_reason,
  })

  test.each(['chat', 'messages'])(
    'the input of a call of %s that is exported to telemetry has its messages, tool calls and tool results in order',
    (name) => {
      expect(said(name, 'gen_ai.input.messages')).toEqual(STEP)
      expect(said(name, 'gen_ai.tool.definitions')).toEqual([
        { type: 'function', name: 'look', description: 'Looks', parameters: SCHEMA },
      ])
    },
  )

  test.each(['chat', 'messages', 'responses', 'gemini'])(
    'telemetry of a call of %s has the instructions apart from the messages, and the answer with its finish reason',
    (name) => {
      expect(said(name, 'gen_ai.system_instructions')).toEqual([{ type: 'text', content: 'Be short.' }])
      expect(said(name, 'gen_ai.output.messages')).toEqual([answer('canaryanswer', 'stop')])
    },
  )

  test.each(['responses', 'gemini'])(
    'the input of a call of %s that is exported to telemetry has its messages',
    (name) => {
      expect(said(name, 'gen_ai.input.messages')).toEqual([QUESTION])
    },
  )

  test.each(['stream', 'messages stream'])(
    'the streamed answer of a call is exported to telemetry as one text: %s',
    (name) => {
      expect(said(name, 'gen_ai.output.messages')).toEqual([answer('canaryanswer '.repeat(3), 'stop')])
      expect(said(name, 'gen_ai.input.messages')).toEqual([QUESTION])
    },
  )

  test('a call of more than 1 MiB is exported to telemetry without its texts', () => {
    const { attributes } = spanOf(ids['long'] ?? '')
    for (const name of SAID) expect(attributes).not.toHaveProperty([name])
    expect(attributes['gen_ai.usage.input_tokens']).toBeGreaterThan(0)
  })

  test('calls that are not conversations, such as embeddings, are exported to telemetry without their texts', () => {
    const { attributes } = spanOf(ids['embeddings'] ?? '')
    for (const name of SAID) expect(attributes).not.toHaveProperty([name])
  })
})
