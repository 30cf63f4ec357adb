import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type UsageRow } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const VENDORS = [
  'deepseek',
  'kimi-k2.6',
  'openrouter',
  'mistral',
  'xai',
  'groq',
  'ollama',
  'vllm',
  'lmstudio',
] as const
type Vendor = (typeof VENDORS)[number]

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced(VENDORS),
    channels: [
      ...VENDORS.map((name) => channel(name, upstream.baseUrl(name), { priority: 1 })),
      channel('spare', upstream.baseUrl('spare'), { models: [...VENDORS] }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())
beforeEach(() => fixture.upstream.script('spare', { kind: 'whole', content: 'from the spare' }))

const HEAD = { id: 'c1', created: 1, model: 'theirs' }
const completion = (message: object, usage: unknown, more: object = {}): string =>
  JSON.stringify({
    ...HEAD,
    object: 'chat.completion',
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', ...message } }],
    usage,
    ...more,
  })
const chunk = (delta: object, more: object = {}, finish: string | null = null): string =>
  `data: ${JSON.stringify({
    ...HEAD,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...more,
  })}\n\n`
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
const DONE = 'data: [DONE]\n\n'

const whole = (vendor: Vendor, body: string): void => fixture.upstream.script(vendor, { kind: 'whole', body })
const streamed = (vendor: Vendor, ...frames: string[]): void =>
  fixture.upstream.script(vendor, { kind: 'stream', frames, ending: 'no done' })
const failing = (status: number, body: object): Behaviour => ({
  kind: 'status',
  status,
  body: JSON.stringify(body),
})

const chat = (vendor: Vendor, fields: object = {}): Promise<FullResponse> =>
  fixture.chat('ann', { ...ask(vendor), ...fields })
const stream = (vendor: Vendor, fields: object = {}): Promise<FullResponse> =>
  fixture.chat('ann', { ...askStream(vendor), ...fields })
const messages = (vendor: Vendor, fields: object = {}): Promise<FullResponse> =>
  call(fixture.gateway.url, ask(vendor, { max_tokens: 50, ...fields }), { key: 'ann', path: '/v1/messages' })
const rowOf = ({ headers }: FullResponse): UsageRow | undefined =>
  databaseOf(fixture.gateway.dataDir).usageOf(String(headers['x-request-id']))

describe('DeepSeek', () => {
  test("DeepSeek's blank lines and comments before an answer are tolerated, and its cached tokens count within the prompt", async () => {
    const usage = {
      prompt_tokens: 100,
      completion_tokens: 20,
      total_tokens: 120,
      prompt_cache_hit_tokens: 60,
      prompt_cache_miss_tokens: 40,
      prompt_tokens_details: { cached_tokens: 60 },
      completion_tokens_details: { reasoning_tokens: 8 },
    }
    const body = `\n\n\n${completion({ content: 'Hello', reasoning_content: 'Hm' }, usage)}`
    whole('deepseek', body)
    const answer = await chat('deepseek')
    expect(answer.text).toBe(body)
    // 40 units for the uncached prompt, a quarter of 60 for the cached one, and four for each of 20 output
    // tokens.
    expect(rowOf(answer)).toMatchObject({ quota: 40 + 15 + 80, cache_read_tokens: 60 })
    const frames = [
      ': keep-alive\n\n',
      chunk({ role: 'assistant', reasoning_content: 'Hm' }),
      chunk({ content: 'Hello' }),
      chunk({}, { usage }, 'stop'),
      DONE,
    ]
    streamed('deepseek', ...frames)
    const live = await stream('deepseek')
    expect(live.text).toContain(frames.slice(1).join(''))
    expect(rowOf(live)?.quota).toBe(135)
  })
})

describe.each(['deepseek', 'kimi-k2.6'] as const)('%s, which refuses calls without thoughts', (vendor) => {
  test('a converted request sends thoughts of earlier turns with tool calls to providers that require reasoning_content', async () => {
    whole(vendor, completion({ content: 'Sunny' }, USAGE))
    const history = [
      { role: 'user', content: 'weather?' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'I should look', signature: '' },
          { type: 'tool_use', id: 'call_1', name: 'look', input: { at: 'Bonn' } },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'sun' }] },
    ]
    const tools = [{ name: 'look', input_schema: { type: 'object' } }]
    const answer = await messages(vendor, { messages: history, tools })
    expect(answer.status, answer.text).toBe(200)
    const sent = JSON.parse(fixture.upstream.only(vendor).text).messages
    expect(sent[1]).toMatchObject({ role: 'assistant', reasoning_content: 'I should look' })
  })

  test.each([
    ['are empty', [{ type: 'thinking', thinking: '', signature: '' }]],
    ['are gone', []],
  ])(
    'a provider that requires reasoning_content gets an empty one for turns with tool calls whose thoughts %s',
    async (_, thoughts) => {
      whole(vendor, completion({ content: 'Sunny' }, USAGE))
      const history = [
        { role: 'user', content: 'weather?' },
        {
          role: 'assistant',
          content: [...thoughts, { type: 'tool_use', id: 'call_1', name: 'look', input: {} }],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'sun' }] },
        { role: 'assistant', content: 'Sunny' },
        { role: 'user', content: 'and now?' },
      ]
      const tools = [{ name: 'look', input_schema: { type: 'object' } }]
      const answer = await messages(vendor, { messages: history, tools })
      expect(answer.status, answer.text).toBe(200)
      const sent = JSON.parse(fixture.upstream.only(vendor).text).messages
      expect(sent[1]).toMatchObject({ role: 'assistant', reasoning_content: '' })
      expect(sent[3]).toEqual({ role: 'assistant', content: 'Sunny' })
    },
  )
})

describe('Kimi', () => {
  test('a stream of Kimi is charged by the usage inside its last choice', async () => {
    const last = { index: 0, delta: {}, finish_reason: 'stop', usage: { ...USAGE, cached_tokens: 4 } }
    const frames = [
      chunk({ role: 'assistant', content: '', reasoning_content: 'Hm' }),
      chunk({ content: 'Hello' }),
      `data: ${JSON.stringify({ ...HEAD, object: 'chat.completion.chunk', choices: [last] })}\n\n`,
      DONE,
    ]
    streamed('kimi-k2.6', ...frames)
    const live = await stream('kimi-k2.6')
    expect(live.text).toBe(frames.join(''))
    expect(rowOf(live)).toMatchObject({ cache_read_tokens: 4, quota: 6 + 1 + 20, reason: 'complete' })
  })

  test('temperature and top_p are removed from requests that are converted for Kimi, and listed in x-gateway-dropped', async () => {
    whole('kimi-k2.6', completion({ content: 'Hello' }, USAGE))
    const answer = await messages('kimi-k2.6', { temperature: 0.2, top_p: 0.5 })
    expect(answer.status, answer.text).toBe(200)
    expect(answer.headers['x-gateway-dropped']).toBe('temperature, top_p')
    const sent = JSON.parse(fixture.upstream.only('kimi-k2.6').text)
    expect(sent).not.toHaveProperty('temperature')
    expect(sent).not.toHaveProperty('top_p')
  })
})

describe('OpenRouter', () => {
  test('a stream of OpenRouter with comments is passed on unchanged, and charged by the usage in its last chunk', async () => {
    const usage = { ...USAGE, cost: 0.0001, is_byok: false, cost_details: { upstream_inference_cost: null } }
    const frames = [
      ': OPENROUTER PROCESSING\n\n',
      chunk({ role: 'assistant', content: 'Hello' }, { provider: 'Acme' }),
      chunk({ content: '' }, { provider: 'Acme' }, 'stop'),
      chunk({ content: '' }, { usage }),
      DONE,
    ]
    streamed('openrouter', ...frames)
    const live = await stream('openrouter', { stream_options: { include_usage: true } })
    expect(live.text).toBe(frames.join(''))
    expect(rowOf(live)?.quota).toBe(30)
  })

  test('another channel is tried if OpenRouter answers with an error under status 200', async () => {
    const error = { code: 502, message: 'Provider returned error', metadata: { provider_name: 'Acme' } }
    whole('openrouter', `\n         \n${JSON.stringify({ error, user_id: 'u' })}`)
    expect((await chat('openrouter')).text).toContain('from the spare')
    streamed('openrouter', chunk({ content: 'He' }), chunk({ content: '' }, { error }, 'error'))
    const live = await stream('openrouter')
    expect(live.text).toContain('Provider returned error')
    expect(live.text).not.toContain('[DONE]')
  })
})

describe('Mistral', () => {
  const CONTENT = [
    { type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] },
    { type: 'text', text: 'Hello' },
  ]

  test("Mistral's thoughts, which are a part of the content, become a thinking block for a messages client", async () => {
    const body = completion({ content: CONTENT }, USAGE)
    whole('mistral', body)
    expect((await chat('mistral')).text).toBe(body)
    const { content } = JSON.parse((await messages('mistral')).text)
    expect(content).toEqual([
      expect.objectContaining({ type: 'thinking', thinking: 'Hm' }),
      { type: 'text', text: 'Hello', citations: null },
    ])
  })

  test("Mistral's audio tokens are charged in addition to its prompt_tokens", async () => {
    const details = { prompt_tokens_details: { audio_tokens: 375 }, prompt_audio_seconds: 30 }
    const usage = { prompt_tokens: 9, completion_tokens: 201, total_tokens: 585, ...details }
    whole('mistral', completion({ content: 'Hello' }, usage))
    expect(rowOf(await chat('mistral'))?.quota).toBe(9 + 375 + 201 * 4)
  })

  test("the client of a call that Mistral refuses gets the status and the message from Mistral's list of details", async () => {
    const detail = [{ loc: ['body', 'max_completion_tokens'], msg: 'Extra inputs', type: 'extra_forbidden' }]
    fixture.upstream.script('mistral', failing(422, { detail }))
    const refused = await chat('mistral')
    expect(refused.status).toBe(422)
    expect(refused.text).toContain('Extra inputs')
  })
})

describe('xAI', () => {
  test("xAI's reasoning tokens are charged in addition to its completion_tokens", async () => {
    const usage = {
      prompt_tokens: 291,
      completion_tokens: 26,
      total_tokens: 513,
      completion_tokens_details: { reasoning_tokens: 196 },
      cost_in_usd_ticks: 1_234_000,
    }
    whole('xai', completion({ content: 'Hello', reasoning_content: 'Hm' }, usage))
    const row = rowOf(await chat('xai'))
    expect(row).toMatchObject({ input_tokens: 291, output_tokens: 222, quota: 291 + 222 * 4 })
  })

  test("the client of a call that xAI refuses gets the message of xAI's error, which has a format of its own", async () => {
    fixture.upstream.script(
      'xai',
      failing(400, { code: 'invalid-argument', error: 'Argument not supported' }),
    )
    const refused = await chat('xai')
    expect(refused.status).toBe(400)
    expect(refused.json().error.message).toContain('Argument not supported')
  })
})

describe('Groq', () => {
  test('a stream of Groq is charged by the usage in x_groq if there is no other usage', async () => {
    const frames = [
      chunk({ role: 'assistant', content: '' }, { x_groq: { id: 'req_1' } }),
      chunk({ content: 'Hello' }),
      chunk({}, { x_groq: { id: 'req_1', usage: { ...USAGE, queue_time: 0.01, total_time: 0.1 } } }, 'stop'),
      DONE,
    ]
    streamed('groq', ...frames)
    const live = await stream('groq')
    expect(live.text).toBe(frames.join(''))
    expect(rowOf(live)).toMatchObject({ quota: 30, reason: 'complete' })
  })

  test("a stream of Groq with a failed tool call ends with Groq's error and without [DONE]", async () => {
    const error = { message: 'Failed to call a function', code: 'tool_use_failed', failed_generation: '<x' }
    streamed('groq', chunk({ content: 'He' }), `event: error\ndata: ${JSON.stringify({ error })}\n\n`)
    const live = await stream('groq')
    expect(live.text).toContain('tool_use_failed')
    expect(live.text).not.toContain('[DONE]')
  })
})

describe('Ollama', () => {
  test("Ollama's usage is requested for every stream, and its tool calls in one piece are converted for messages clients", async () => {
    const calls = [
      { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
    ]
    fixture.upstream.decide('ollama', ({ text }) => ({
      kind: 'stream',
      ending: 'no done',
      frames: [
        chunk({ role: 'assistant', content: '', reasoning: 'Hm' }),
        chunk({ role: 'assistant', content: '', tool_calls: calls }),
        chunk({}, {}, 'tool_calls'),
        ...(text.includes('"include_usage":true')
          ? [`data: ${JSON.stringify({ ...HEAD, choices: [], usage: USAGE })}\n\n`]
          : []),
        DONE,
      ],
    }))
    expect(rowOf(await stream('ollama'))).toMatchObject({ quota: 30, reason: 'complete' })
    const live = await messages('ollama', { stream: true })
    expect(live.text).toContain('"thinking":"Hm"')
    expect(live.text).toContain('"partial_json":"{\\"a\\":1}"')
    expect(live.text).toContain('"stop_reason":"tool_use"')
  })

  test('another channel is tried if Ollama answers that the model was not pulled', async () => {
    const error = { message: "model 'x' not found, try pulling it first", type: 'api_error', code: null }
    fixture.upstream.script('ollama', failing(404, { error }))
    expect((await chat('ollama')).text).toContain('from the spare')
  })
})

describe('vLLM', () => {
  test('a stream of vLLM with usage in every chunk is charged by the last usage', async () => {
    const sofar = (completed: number): object => ({
      usage: { prompt_tokens: 10, completion_tokens: completed, total_tokens: 10 + completed },
    })
    const frames = [
      chunk({ role: 'assistant', content: '' }, sofar(0)),
      chunk({ content: 'Hel' }, sofar(1)),
      chunk({ content: 'lo' }, sofar(5), 'stop'),
      `data: ${JSON.stringify({ ...HEAD, choices: [], ...sofar(5) })}\n\n`,
      DONE,
    ]
    streamed('vllm', ...frames)
    const live = await stream('vllm', {
      stream_options: { include_usage: true, continuous_usage_stats: true },
    })
    expect(live.text).toBe(frames.join(''))
    expect(rowOf(live)?.quota).toBe(30)
  })

  test("the client of a call that vLLM refuses gets the message of vLLM's error, which is not inside an error object", async () => {
    const body = { object: 'error', message: 'maximum context length', type: 'BadRequestError', code: 400 }
    fixture.upstream.script('vllm', failing(400, body))
    const refused = await chat('vllm')
    expect(refused.status).toBe(400)
    expect(refused.json().error.message).toContain('maximum context length')
  })
})

describe('LM Studio', () => {
  test('statistics that LM Studio adds to a response are passed on unchanged', async () => {
    const body = completion({ content: 'Hello' }, USAGE, { stats: { tokens_per_second: 51.4 } })
    whole('lmstudio', body)
    const answer = await chat('lmstudio')
    expect(answer.text).toBe(body)
    expect(rowOf(answer)?.quota).toBe(30)
  })

  test('errors of LM Studio reach the client, whether they are a plain text or an error event in a stream', async () => {
    fixture.upstream.script('lmstudio', failing(400, { error: 'No models loaded' }))
    expect((await chat('lmstudio')).json().error.message).toContain('No models loaded')
    const error = { error: { message: 'The model has crashed' } }
    streamed('lmstudio', chunk({ content: 'He' }), `event: error\ndata: ${JSON.stringify(error)}\n\n`)
    const live = await stream('lmstudio')
    expect(live.text).toContain('The model has crashed')
    expect(live.text).not.toContain('[DONE]')
  })
})
