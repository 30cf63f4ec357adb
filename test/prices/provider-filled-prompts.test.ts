import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { metricsOf } from '../operations/metrics-text.ts'

/** One quota unit for each prompt token, none for the uses of tools. */
const PRICE = {
  input: 2,
  output: 8,
  tools: { web_search: 0, google_search: 0, file_search: 0, code_interpreter: 0, code_execution: 0 },
}
/** The context that is assumed for a model of which the price data know nothing. */
const CONTEXT = 200_000
/** More than the prompt and the output of these requests can cost. */
const REST = 20_000
const ONE_CENT = 5_000
/** Pays one whole call that may use a tool four times, not two. */
const ONE_CALL = 4 * CONTEXT + 2 * REST
/** Pays one stream that uses a tool twice, and not a third time. */
const TWO_USES = 2 * CONTEXT + REST

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, hold_tokens: 16, hold_wait: 0 },
    models: Object.fromEntries(['c', 'm', 'r', 'g', 'o'].map((name) => [name, { price: PRICE }])),
    channels: [
      channel('c', upstream.baseUrl('c')),
      channel('o', upstream.baseUrl('o'), { allow: ['plugins', 'search_parameters'] }),
      channel('m', upstream.baseUrl('m'), { protocol: 'messages' }),
      channel('r', upstream.baseUrl('r'), { protocol: 'responses' }),
      channel('g', upstream.baseUrl('g'), { protocol: 'gemini' }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [
        token('cent', { remain_quota: ONE_CENT }),
        token('call', { remain_quota: ONE_CALL }),
        token('uses', { remain_quota: TWO_USES }),
        token('poor', { remain_quota: 1 }),
        token('rich'),
      ]),
    ],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

type Client = 'chat' | 'messages' | 'responses' | 'gemini'

/** Sends a minimal request with these fields, of at most 16 output tokens. */
const CLIENTS: Readonly<
  Record<Client, (key: string, fields: object, stream?: boolean) => Promise<FullResponse>>
> = {
  chat: (key, fields, stream = false) =>
    fixture.chat(key, {
      model: 'c',
      messages: [{ role: 'user', content: 'hi' }],
      max_tokens: 16,
      stream,
      ...fields,
    }),
  messages: (key, fields, stream = false) =>
    fixture.chat(
      key,
      { model: 'm', max_tokens: 16, messages: [{ role: 'user', content: 'hi' }], stream, ...fields },
      { path: '/v1/messages' },
    ),
  responses: (key, fields, stream = false) =>
    fixture.chat(
      key,
      { model: 'r', input: 'hi', max_output_tokens: 16, stream, ...fields },
      { path: '/v1/responses' },
    ),
  gemini: (key, fields, stream = false) =>
    fixture.chat(
      key,
      { contents: [{ parts: [{ text: 'hi' }] }], generationConfig: { maxOutputTokens: 16 }, ...fields },
      { path: `/v1beta/models/g:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}` },
    ),
}

const LANES: Readonly<Record<Client, string>> = { chat: 'c', messages: 'm', responses: 'r', gemini: 'g' }

/** A whole answer of each dialect that reports this many prompt tokens. */
const ANSWERS: Readonly<Record<Client, (prompt: number) => object>> = {
  chat: (prompt) => ({
    id: 'c1',
    object: 'chat.completion',
    created: 7,
    model: 'c',
    choices: [{ index: 0, message: { role: 'assistant', content: 'said' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: prompt, completion_tokens: 1, total_tokens: prompt + 1 },
  }),
  messages: (prompt) => ({
    id: 'm1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'said' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: prompt, output_tokens: 1 },
  }),
  responses: (prompt) => response([], prompt),
  gemini: (prompt) => ({
    candidates: [{ content: { role: 'model', parts: [{ text: 'said' }] }, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: prompt, candidatesTokenCount: 1, totalTokenCount: prompt + 1 },
  }),
}

const SAID = {
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text: 'said', annotations: [] }],
}
const response = (output: readonly object[], prompt: number): object => ({
  id: 'resp_1',
  object: 'response',
  created_at: 7,
  status: 'completed',
  model: 'r',
  output: [...output, SAID],
  usage: { input_tokens: prompt, output_tokens: 1, total_tokens: prompt + 1 },
})

/** The stream of a response that uses web search this many times. */
function searchingFrames(uses: number, prompt: number): string[] {
  const searches = Array.from({ length: uses }, (_, at) => ({
    id: `ws_${at}`,
    type: 'web_search_call',
    status: 'completed',
    action: { type: 'search' },
  }))
  const whole = response(searches, prompt)
  return [
    { type: 'response.created', response: { ...whole, status: 'in_progress', output: [], usage: null } },
    ...searches.flatMap((item, at) => [
      { type: 'response.output_item.added', output_index: at, item },
      { type: 'response.output_item.done', output_index: at, item },
    ]),
    { type: 'response.completed', response: whole },
  ].map((event, at) => `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number: at })}\n\n`)
}

const json = (value: object) => ({ kind: 'whole', body: JSON.stringify(value) }) as const
const typed = (type: string, more: object = {}): object => ({ tools: [{ type, ...more }] })

const TOOLS: readonly [string, Client, object][] = [
  ['web search', 'chat', { web_search_options: {} }],
  ['web search', 'responses', typed('web_search')],
  ['an MCP server', 'responses', typed('mcp', { server_label: 's', server_url: 'https://mcp.test/' })],
  ['file search', 'responses', typed('file_search', { vector_store_ids: ['v'] })],
  ['a code interpreter', 'responses', typed('code_interpreter', { container: { type: 'auto' } })],
  ['a tool that no price list has', 'responses', typed('new_search')],
  ['web search', 'messages', typed('web_search_20250305', { name: 'web_search' })],
  ['web fetch', 'messages', typed('web_fetch_20250910', { name: 'web_fetch' })],
  ['code execution', 'messages', typed('code_execution_20250825', { name: 'code_execution' })],
  ['an MCP server', 'messages', { mcp_servers: [{ type: 'url', name: 's', url: 'https://mcp.test/' }] }],
  ['Google search', 'gemini', { tools: [{ googleSearch: {} }] }],
  ['URL context', 'gemini', { tools: [{ url_context: {} }] }],
  ['code execution', 'gemini', { tools: [{ codeExecution: {} }] }],
  ['file search', 'gemini', { tools: [{ fileSearch: { fileSearchStoreNames: ['f'] } }] }],
]

const remaining = (key: string): number => database.token(`token-${key}`).remain_quota
/** The units that a refused call needs. */
async function needed(client: Client, fields: object, stream = false): Promise<number> {
  const { status, text } = await CLIENTS[client]('poor', fields, stream)
  expect(status, text).toBe(403)
  const { error } = JSON.parse(text)
  return Number(
    error.needed ?? error.details.find((one: { metadata?: object }) => one.metadata).metadata.needed,
  )
}

describe.each(TOOLS)('the hold for prompts that %s fills, in a %s request', (_, client, fields) => {
  test.each([false, true])('40 calls at once on one cent are all refused (stream: %s)', async (stream) => {
    const lane = LANES[client]
    fixture.upstream.script(lane, json(ANSWERS[client](250_000)))
    const before = fixture.upstream.received(lane).length
    const calls = await Promise.all(Array.from({ length: 40 }, () => CLIENTS[client]('cent', fields, stream)))
    expect(calls.map(({ status }) => status)).toEqual(calls.map(() => 403))
    expect(fixture.upstream.received(lane)).toHaveLength(before)
    expect(remaining('cent')).toBe(ONE_CENT)
  })

  test('a whole call holds the context of the model four times, and a stream once', async () => {
    for (const [stream, contexts] of [
      [false, 4],
      [true, 1],
    ] as const) {
      const units = await needed(client, fields, stream)
      expect(units).toBeGreaterThanOrEqual(contexts * CONTEXT)
      expect(units).toBeLessThan(contexts * CONTEXT + REST)
    }
  })
})

test('of 40 calls at once, those that are admitted cover all that their provider reads within the bound', async () => {
  fixture.upstream.script('r', json(response([], 4 * CONTEXT)))
  const calls = await Promise.all(
    Array.from({ length: 40 }, () => CLIENTS.responses('call', typed('web_search'))),
  )
  expect(calls.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(remaining('call')).toBe(ONE_CALL - 4 * CONTEXT - 4)
})

describe('the number of contexts that are held', () => {
  const search = { type: 'web_search' }
  const fetching = { type: 'web_fetch_20250910', name: 'web_fetch' }
  test.each<[string, Client, object, number]>([
    ['the maximum of uses of a tool', 'messages', { tools: [{ ...fetching, max_uses: 2 }] }, 2],
    [
      'four for each of two tools',
      'messages',
      { tools: [fetching, { ...fetching, type: 'web_search_20250305' }] },
      8,
    ],
    ['the maximum of all calls', 'responses', { tools: [search, { type: 'mcp' }], max_tool_calls: 3 }, 3],
    [
      'the default where the maximum is below one',
      'messages',
      { tools: [{ ...fetching, max_uses: -1000 }] },
      4,
    ],
    [
      'the default where the maximum is a fraction',
      'messages',
      { tools: [{ ...fetching, max_uses: 0.5 }] },
      4,
    ],
    [
      'the default where the maximum of calls is negative',
      'responses',
      { tools: [search], max_tool_calls: -1 },
      4,
    ],
    [
      'none for a tool that is removed',
      'messages',
      { tools: [{ type: 'advisor_20260301', name: 'advisor', model: 'dear' }] },
      0,
    ],
    ['none for images', 'responses', { tools: [{ type: 'image_generation' }] }, 0],
    ['none for functions', 'responses', { tools: [{ type: 'function', name: 'f', parameters: {} }] }, 0],
  ])('is %s (%s)', async (_, client, fields, contexts) => {
    const units = await needed(client, fields)
    const images = JSON.stringify(fields).includes('image_generation') ? 4 * 125_000 : 0
    expect(units).toBeGreaterThanOrEqual(contexts * CONTEXT + images)
    expect(units).toBeLessThan(contexts * CONTEXT + images + REST)
  })

  test.each<[string, object]>([
    ['the web plugin of OpenRouter', { plugins: [{ id: 'web' }] }],
    ['search_parameters of xAI', { search_parameters: { mode: 'on' } }],
  ])('is four for %s where the channel allows it, else none', async (_, fields) => {
    const allowed = await needed('chat', { model: 'o', ...fields })
    expect(allowed).toBeGreaterThanOrEqual(4 * CONTEXT)
    expect(allowed).toBeLessThan(4 * CONTEXT + REST)
    expect(await needed('chat', fields)).toBeLessThan(REST)
  })

  test('more than 10,000 uses count as 10,000', async () => {
    const all = [
      await needed('messages', { tools: [{ ...fetching, max_uses: 10 ** 15 }] }),
      await needed('responses', { tools: [search], max_tool_calls: Number.MAX_SAFE_INTEGER }),
    ]
    for (const units of all) {
      expect(units).toBeGreaterThanOrEqual(10_000 * CONTEXT)
      expect(units).toBeLessThan(10_000 * CONTEXT + 10_000 * REST)
    }
  })

  test.each<[string, Client, object]>([
    ['max_content_tokens', 'messages', { tools: [{ ...fetching, max_uses: 2, max_content_tokens: 1_000 }] }],
    [
      'max_num_results',
      'responses',
      { tools: [{ type: 'file_search', vector_store_ids: ['v'], max_num_results: 1 }], max_tool_calls: 2 },
    ],
  ])('is smaller where the request bounds the results by %s', async (_, client, fields) => {
    // What is read again with each of two uses is the prompt and the results of both.
    const units = await needed(client, fields)
    expect(units).toBeGreaterThan(2 * 2 * 1_000)
    expect(units).toBeLessThan(CONTEXT)
  })

  test('a bound of results on a tool that does not know it is ignored', async () => {
    const tools = [{ type: 'web_search_20250305', name: 'web_search', max_content_tokens: 1 }]
    expect(await needed('messages', { tools })).toBeGreaterThan(4 * CONTEXT)
  })

  test('a large prompt is held again for each use, however small the results', async () => {
    const messages = [{ role: 'user', content: 'x'.repeat(100_000) }]
    const fields = { tools: [{ ...fetching, max_uses: 3, max_content_tokens: 1 }], messages }
    expect(await needed('messages', fields)).toBeGreaterThan(4 * 100_000)
  })
})

describe('a stream that uses tools', () => {
  const exceeded = async (): Promise<number> =>
    (await metricsOf(fixture.gateway.url)).sum('sluice_hold_exceeded_total', { model: 'r' })

  test('holds one context more with each use, and ends where a use cannot be held', async () => {
    const frames = searchingFrames(3, 3 * CONTEXT)
    const used = Promise.withResolvers<void>()
    fixture.upstream.script('r', {
      kind: 'stream',
      frames: frames.slice(0, -1),
      // A stream whose end comes together with its last use is passed on, because it costs what it reports.
      rest: { after: used.promise, frames: frames.slice(-1) },
      ending: 'no done',
    })
    const answer = await fixture.live(
      'uses',
      { model: 'r', input: 'hi', max_output_tokens: 16, stream: true, ...typed('web_search') },
      { path: '/v1/responses' },
    )
    expect(answer.status).toBe(200)
    await answer.until('ws_2')
    used.resolve()
    const { text } = await answer.end()
    expect(text).toContain('response.failed')
    expect(text).toContain('insufficient_quota')
    expect(remaining('uses')).toBeGreaterThanOrEqual(0)
  })

  test('reserves quota for the uses that come together with its end', async () => {
    const before = await exceeded()
    fixture.upstream.script('r', {
      kind: 'stream',
      frames: [searchingFrames(3, 3 * CONTEXT).join('')],
      ending: 'no done',
    })
    expect((await CLIENTS.responses('rich', typed('web_search'), true)).status).toBe(200)
    expect(await exceeded()).toBe(before)
  })

  test.each([
    ['within the bound of its uses is covered by the hold', 3 * CONTEXT, 0],
    ['beyond that bound is charged and counted', 4 * CONTEXT + REST, 1],
  ])('what is reported %s', async (_, prompt, counted) => {
    const before = [await exceeded(), database.token('token-rich').used_quota] as const
    // Two uses and the one that was held in advance.
    fixture.upstream.script('r', {
      kind: 'stream',
      frames: searchingFrames(2, prompt),
      drip: true,
      ending: 'no done',
    })
    const { status } = await CLIENTS.responses('rich', typed('web_search'), true)
    expect(status).toBe(200)
    expect(database.token('token-rich').used_quota - before[1]).toBe(prompt + 4)
    expect(await exceeded()).toBe(before[0] + counted)
  })
})
