import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { completionText, usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { type Collector, type Span, startCollector, textIn } from '../fixtures/collector.ts'
import {
  channel,
  type Configuration,
  priced,
  ROOT,
  token,
  user,
  withoutModelLists,
} from '../fixtures/configuration.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { discard, eventually, type Program, runProgram } from './program.ts'

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
const NESTED = '['.repeat(50_000) + ']'.repeat(50_000)

let upstream: ScriptedUpstream
beforeAll(async () => {
  upstream = await startUpstream()
  upstream.decide('m', ({ text }) =>
    text.includes('"stream":true')
      ? { kind: 'stream', events: 3, word: 'canaryanswer ' }
      : {
          kind: 'whole',
          body: completionText(text.includes('unseen') ? 'unseenanswer' : 'canaryanswer', usageText(40, 6)),
        },
  )
})
afterAll(() => upstream?.stop())

/** Makes a call, and returns its request id. */
type Say = (path: string, body: object, key?: string) => Promise<string>

interface Traced {
  readonly collector: Collector
  readonly spanOf: (id: string) => Span
}

/**
 * Runs a gateway, makes the calls of the work, stops it, and returns its spans of calls by their request id. `keep`
 * changes what is kept of later calls.
 */
async function traced(
  what: string,
  env: Record<string, string>,
  work: (say: Say, keep: (what: string) => Promise<void>) => Promise<void>,
): Promise<Traced> {
  const collector = await startCollector()
  const keeping = (level: string): Configuration => ({
    options: { cache: { ttl: '1h' } },
    content_log: { what: level },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann'), token('less', { content_log: { what: 'metadata' } })])],
  })
  let program: Program | undefined
  try {
    // The default of three seconds is short for a busy machine.
    const variables = {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_TIMEOUT: '60000',
      ...env,
    }
    const started = await runProgram({ config: keeping(what), env: variables })
    program = started
    await started.ready()
    await work(
      async (path, body, key = 'ann') => {
        const { headers } = await call(started.url, body, { key, path })
        return String(headers['x-request-id'])
      },
      async (level) => {
        writeFileSync(started.folder.configFile, stringify(withoutModelLists(keeping(level))))
        // The first reading may have begun before the change.
        for (const time of ['first', 'second']) {
          const applied = (): number => started.out().split('"msg":"configuration applied"').length
          const before = applied()
          started.kill('SIGHUP')
          await eventually(() => applied() > before, `the ${time} reading is applied`)
        }
      },
    )
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
/** Parts of the texts of calls of which nothing may be exported. */
const UNSEEN = { model: 'm', messages: [{ role: 'user', content: 'unseenprompt' }] }

/** The calls of one gateway whose environment has texts exported, by their names. */
const captured: Record<string, string> = {}
let capturing: Traced
beforeAll(async () => {
  capturing = await traced('full', CAPTURE, makeCapturedCalls)
})
const spanOf = (name: string): Span => capturing.spanOf(captured[name] ?? '')

describe('texts are exported only if they are kept, and if the variable says so', () => {
  test.each(['nothing is kept', 'only metadata are kept', 'the key lessens it'])(
    'prompt and answer of a call are not exported to telemetry if %s',
    (name) => {
      expect(capturing.collector.raw()).not.toMatch(/unseen/)
      const { attributes } = spanOf(name)
      for (const attribute of SAID) expect(attributes).not.toHaveProperty([attribute])
    },
  )

  test('prompt and answer of a call are not exported to telemetry if the variable is not set', async () => {
    let id = ''
    const { collector, spanOf: spanWithout } = await traced('full', {}, async (say) => {
      id = await say('/v1/chat/completions', HELLO)
    })
    expect(collector.raw()).not.toMatch(/canary/)
    for (const attribute of SAID) expect(spanWithout(id).attributes).not.toHaveProperty([attribute])
  })
})

describe('an event for each call whose content is exported', () => {
  const LOGS = { ...CAPTURE, OTEL_LOGS_EXPORTER: 'otlp' }

  test.each(['http/json', 'http/protobuf'])(
    "the OpenTelemetry event with a call's prompt and answer belongs to the trace of the call's span, over %s",
    async (protocol) => {
      let [full, less] = ['', '']
      const env = { ...LOGS, OTEL_EXPORTER_OTLP_PROTOCOL: protocol }
      const { collector, spanOf: spanWithLogs } = await traced('full', env, async (say) => {
        full = await say('/v1/chat/completions', HELLO)
        less = await say('/v1/chat/completions', HELLO, 'less')
      })
      const events = collector.events()
      expect(events.map(({ attributes }) => attributes['sluice.request_id'])).toEqual([full])
      const [event] = events
      const span = spanWithLogs(full)
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
      expect(spanWithLogs(less).attributes).not.toHaveProperty(['gen_ai.input.messages'])
    },
  )

  test("a call's texts are exported in no OpenTelemetry event without a log exporter, or if the call is not sampled", async () => {
    const unsampled = { ...LOGS, OTEL_TRACES_SAMPLER: 'always_off' }
    const { collector: withoutSpans } = await traced('full', unsampled, async (say) => {
      await say('/v1/chat/completions', HELLO)
    })
    for (const collector of [capturing.collector, withoutSpans]) {
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

test('a hit of the answer cache is exported as one span without tokens, with the texts of the call', () => {
  const [call, hit] = ['call', 'hit'].map(spanOf)
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

test('at content level redacted no secrets or personal data are exported in telemetry, whole or streamed', () => {
  expect(capturing.collector.raw()).not.toContain('ann@example.com')
  for (const { attributes } of ['redacted', 'redacted stream'].map(spanOf)) {
    expect(JSON.parse(textIn(attributes, 'gen_ai.input.messages'))).toEqual([
      { role: 'user', parts: [{ type: 'text', content: 'canaryprompt of [REDACTED]' }] },
    ])
    expect(textIn(attributes, 'gen_ai.output.messages')).toContain('canaryanswer')
  }
})

async function makeCapturedCalls(say: Say, keep: (what: string) => Promise<void>): Promise<void> {
  captured['chat'] = await say('/v1/chat/completions', {
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
  captured['stream'] = await say('/v1/chat/completions', { ...HELLO, stream: true })
  captured['messages'] = await say('/v1/messages', {
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
  captured['messages stream'] = await say('/v1/messages', { ...HELLO, max_tokens: 20, stream: true })
  captured['responses'] = await say('/v1/responses', {
    model: 'm',
    instructions: 'Be short.',
    input: [{ role: 'user', content: 'canaryprompt' }],
  })
  captured['gemini'] = await say('/v1beta/models/m:generateContent', {
    systemInstruction: { parts: [{ text: 'Be short.' }] },
    contents: [{ role: 'user', parts: [{ text: 'canaryprompt' }] }],
  })
  captured['long'] = await say('/v1/chat/completions', {
    model: 'm',
    messages: [{ role: 'user', content: 'x'.repeat(1024 * 1024) }],
  })
  const calls = [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: NESTED } }]
  captured['nested'] = await say('/v1/chat/completions', {
    model: 'm',
    messages: [HELLO.messages[0], { role: 'assistant', content: null, tool_calls: calls }],
  })
  captured['embeddings'] = await say('/v1/embeddings', { model: 'm', input: 'canaryprompt' })
  const again = { model: 'm', messages: [{ role: 'user', content: 'canaryprompt again' }] }
  for (const name of ['call', 'hit']) captured[name] = await say('/v1/chat/completions', again)
  captured['the key lessens it'] = await say('/v1/chat/completions', UNSEEN, 'less')
  for (const [level, name] of [
    ['metadata', 'only metadata are kept'],
    ['none', 'nothing is kept'],
  ] as const) {
    await keep(level)
    captured[name] = await say('/v1/chat/completions', { ...UNSEEN, user: level })
  }
  await keep('redacted')
  const messages = [{ role: 'user', content: 'canaryprompt of ann@example.com' }]
  captured['redacted'] = await say('/v1/chat/completions', { model: 'm', messages })
  captured['redacted stream'] = await say('/v1/chat/completions', { model: 'm', messages, stream: true })
}

describe('what was said in calls whose content is kept in full', () => {
  const said = (name: string, attribute: (typeof SAID)[number]): unknown => {
    const text = textIn(spanOf(name).attributes, attribute)
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
    const { attributes } = spanOf('long')
    for (const name of SAID) expect(attributes).not.toHaveProperty([name])
    expect(attributes['gen_ai.usage.input_tokens']).toBeGreaterThan(0)
  })

  test('arguments of a tool that are nested deeply are exported to telemetry as a text, and later calls too', () => {
    expect(said('nested', 'gen_ai.input.messages')).toMatchObject([
      QUESTION,
      { parts: [{ type: 'tool_call', arguments: NESTED }] },
    ])
  })

  test('calls that are not conversations, such as embeddings, are exported to telemetry without their texts', () => {
    const { attributes } = spanOf('embeddings')
    for (const name of SAID) expect(attributes).not.toHaveProperty([name])
  })
})
