import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { completionText, contentFrame, DONE_FRAME, finishFrame, usageText } from '../fixtures/behaviour.ts'
import { CERTAINLY_GONE_MS, type FullResponse } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { metricsOf } from '../operations/metrics-text.ts'

/** Quota units a token: 1 for input, 4 for output. */
const price = { input: 2, output: 8 }
const TOKENS = 100 + 10 * 4
/** A price at which the results of tools cost nothing, so that a hold for tools is that for their uses. */
const WITHOUT_PROMPT = { ...price, input: 0 }
/** Quota units of one use: the list prices in USD times 500,000. */
const LISTED = { search: 5_000, file: 1_250, interpreter: 15_000, container: 25_000, maps: 12_500 }
const STATED = {
  ...price,
  tools: { image_generation: 0.04, mcp: 0.001, web_fetch: 0.002, code_interpreter: 0 },
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, hold_tokens: 16 },
    models: {
      ...Object.fromEntries(
        ['r', 'm', 'c', 'gemini-3-pro', 'gemini-2.5-flash'].map((name) => [name, { price }]),
      ),
      'r-uses': { price: WITHOUT_PROMPT },
      'm-uses': { price: WITHOUT_PROMPT },
      advised: { price },
    },
    channels: [
      channel('r', upstream.baseUrl('r'), { protocol: 'responses', models: ['r', 'r-uses'] }),
      channel('m', upstream.baseUrl('m'), { protocol: 'messages', models: ['m', 'm-uses'] }),
      channel('c', upstream.baseUrl('c')),
      channel('advised', upstream.baseUrl('advised'), { protocol: 'messages', allow: ['models'] }),
      channel('g', upstream.baseUrl('g'), {
        protocol: 'gemini',
        models: ['gemini-3-pro', 'gemini-2.5-flash'],
      }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [
        token('ann'),
        token('poor', { remain_quota: 25_000 }),
        token('small', { remain_quota: 45_000 }),
      ]),
      ADMIN_USER,
    ],
  }))
})
afterAll(() => fixture?.close())

const CLIENTS = {
  responses: (fields: object) =>
    fixture.chat('ann', { model: 'r', input: 'hi', ...fields }, { path: '/v1/responses' }),
  messages: (fields: object) =>
    fixture.chat(
      'ann',
      { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }], ...fields },
      { path: '/v1/messages' },
    ),
  chat: (fields: object) =>
    fixture.chat('ann', { model: 'c', messages: [{ role: 'user', content: 'hi' }], ...fields }),
}
const gemini = (model: string, fields: object, stream = false): Promise<FullResponse> =>
  fixture.chat(
    'ann',
    { contents: [{ parts: [{ text: 'hi' }] }], ...fields },
    { path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}` },
  )

interface Row {
  readonly quota: number
  readonly reason: string
  readonly web_searches: number
  readonly price_incomplete: boolean
  readonly cost: readonly { kind: string; count: number; price_usd: string; quota: string }[] | null
}

/** The row of a call, whose cost lines add up to its charge. */
function row({ headers, status, text }: FullResponse): Promise<Row> {
  expect(status, text).toBe(200)
  return rowOf(String(headers['x-request-id']))
}

async function rowOf(id: string): Promise<Row> {
  const { data } = await manage<Row & { note: string }>(fixture.gateway.url, ADMIN, `GET /api/log/${id}`)
  // What a call held has no lines.
  if (data.note === 'usage_implausible') return data
  const sum = (data.cost ?? []).reduce((total, { quota }) => total + Number(quota), 0)
  expect(Math.round(sum)).toBe(data.quota)
  return data
}

const TEXT = {
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text: 'said', annotations: [] }],
}
const USAGE = { input_tokens: 100, output_tokens: 10, total_tokens: 110 }
const response = (output: readonly object[], more: object = {}): object => ({
  id: 'resp_1',
  object: 'response',
  created_at: 7,
  status: 'completed',
  model: 'm',
  output: [...output, TEXT],
  usage: USAGE,
  ...more,
})
const json = (value: object) => ({ kind: 'whole', body: JSON.stringify(value) }) as const
const frame = (event: object & { readonly type?: string; readonly sequence_number?: number }): string =>
  `${event.type ? `event: ${event.type}\n` : ''}data: ${JSON.stringify(event)}\n\n`
/** The stream of a response; its last event has no items. */
const responseFrames = (output: readonly object[], more: object = {}): string[] => {
  const whole = response(output, more) as { readonly output: readonly object[] }
  return [
    { type: 'response.created', response: { ...whole, status: 'in_progress', output: [], usage: null } },
    ...whole.output.flatMap((item, at) => [
      { type: 'response.output_item.added', output_index: at, item },
      { type: 'response.output_item.done', output_index: at, item },
    ]),
    { type: 'response.completed', response: { ...whole, output: [] } },
  ].map((event, at) => frame({ ...event, sequence_number: at }))
}

const item = (type: string, more: object = {}): object => ({
  id: `id_${type}`,
  type,
  status: 'completed',
  ...more,
})
const searched = (id: string): object => item('web_search_call', { id, action: { type: 'search' } })
const ran = (id: string): object => item('code_interpreter_call', { container_id: id })
const drawn = (size: string, quality: string): object => item('image_generation_call', { size, quality })
const shell = (environment: object): object => item('shell_call', { environment })
const IMAGE_TOKENS = {
  input_tokens: 30,
  input_tokens_details: { text_tokens: 20, image_tokens: 10 },
  output_tokens: 1_000,
}

describe('tools of responses', () => {
  test.each([
    ['searches of files', [item('file_search_call'), item('file_search_call')], {}, 2 * LISTED.file],
    ['containers, each once', [ran('a'), ran('a'), ran('b')], {}, 2 * LISTED.interpreter],
    [
      'a container of 4 GB',
      [ran('a')],
      { tools: [{ type: 'code_interpreter', container: { type: 'auto', memory_limit: '4g' } }] },
      60_000,
    ],
    [
      'a shell in a container',
      [shell({ type: 'container_reference', container_id: 'c' })],
      {},
      LISTED.interpreter,
    ],
    ['a shell of the client', [shell({ type: 'local' })], {}, 0],
    ['searches of the web', [item('web_search_call', { action: { type: 'search' } })], {}, LISTED.search],
    [
      'searches that are reported',
      [],
      { tool_usage: { web_search: { num_requests: 3 } } },
      3 * LISTED.search,
    ],
    ['calls of MCP servers, which cost nothing', [item('mcp_call'), item('mcp_call')], {}, 0],
    // gpt-image-1: 0.011 USD for a square in low quality, 0.25 for an oblong in high quality.
    [
      'images by size and quality',
      [drawn('1024x1024', 'low'), drawn('1536x1024', 'high')],
      {},
      5_500 + 125_000,
    ],
    // gpt-image-1-mini: 2, 2.5 and 8 USD a million tokens: 20 × 1 + 10 × 1.25 + 1000 × 4 = 4032.5
    [
      'images by their tokens',
      [drawn('1024x1024', 'low')],
      {
        tools: [{ type: 'image_generation', model: 'gpt-image-1-mini' }],
        tool_usage: { image_gen: IMAGE_TOKENS },
      },
      4_033,
    ],
    [
      'what the client runs',
      [item('local_shell_call'), item('apply_patch_call'), item('computer_call')],
      {},
      0,
    ],
  ])(
    'tools that the responses API ran are charged, for whole, streamed and background calls: %s',
    async (_, output, more, quota) => {
      fixture.upstream.script('r', json(response(output, more)))
      const whole = await row(await CLIENTS.responses({}))
      expect(whole).toMatchObject({ quota: TOKENS + quota, price_incomplete: false })
      fixture.upstream.script('r', {
        kind: 'stream',
        frames: responseFrames(output, more),
        ending: 'no done',
      })
      expect((await row(await CLIENTS.responses({ stream: true }))).quota).toBe(TOKENS + quota)
      fixture.upstream.script(
        'r',
        json(response([], { status: 'queued', usage: null })),
        json(response(output, more)),
      )
      const begun = await CLIENTS.responses({ background: true })
      await fixture.chat('ann', '', { path: `/v1/responses/${begun.json().id}`, method: 'GET' })
      expect((await row(begun)).quota).toBe(TOKENS + quota)
    },
  )

  test("tools that an input item adds are charged like the request's tools, and unknown ones mark the row's price incomplete", async () => {
    const container = { type: 'auto', memory_limit: '4g' }
    const tools = (...list: object[]): object => ({
      input: [
        { role: 'user', content: 'hi' },
        { type: 'additional_tools', role: 'developer', tools: list },
      ],
    })
    // The response only repeats the tools of the request.
    fixture.upstream.script('r', json(response([ran('a')])))
    const charged = await row(await CLIENTS.responses(tools({ type: 'code_interpreter', container })))
    expect(charged).toMatchObject({ quota: TOKENS + 60_000, price_incomplete: false })
    fixture.upstream.script('r', json(response([])))
    const unknown = await row(await CLIENTS.responses(tools({ type: 'new_thing' })))
    expect(unknown).toMatchObject({ quota: TOKENS, price_incomplete: true })
  })

  test('each tool that the responses API ran has a cost line with its count and the price of one use in USD', async () => {
    fixture.upstream.script('r', json(response([ran('a'), ran('b'), item('file_search_call')])))
    const { cost } = await row(await CLIENTS.responses({}))
    expect(cost).toEqual([
      { kind: 'input', count: 100, price_usd: '2', quota: '100' },
      { kind: 'output', count: 10, price_usd: '8', quota: '40' },
      { kind: 'code_interpreter', count: 2, price_usd: '0.03', quota: '30000' },
      { kind: 'file_search', count: 1, price_usd: '0.0025', quota: '1250' },
    ])
  })

  test('tools of the responses API that had begun when a stream broke off are charged', async () => {
    const frames = responseFrames([ran('a'), item('file_search_call')]).slice(0, -3)
    fixture.upstream.script('r', { kind: 'stream', frames, ending: 'reset' })
    const answer = await CLIENTS.responses({ stream: true })
    const { quota, reason, cost } = await row(answer)
    expect(reason).toBe('cut')
    expect(cost?.slice(-2).map(({ kind, count }) => [kind, count])).toEqual([
      ['code_interpreter', 1],
      ['file_search', 1],
    ])
    expect(quota).toBeGreaterThan(LISTED.interpreter + LISTED.file)
  })
})

const block = (name: string, id = name): object => ({
  type: 'server_tool_use',
  id: `srvtoolu_${id}`,
  name,
  input: {},
})
const message = (content: readonly object[], usage: object = {}): object => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [...content, { type: 'text', text: 'said' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 100, output_tokens: 10, ...usage },
})
const messageFrames = (content: readonly object[], usage: object = {}): string[] => {
  const whole = message(content, usage) as { content: readonly object[]; usage: object }
  return [
    {
      type: 'message_start',
      message: { ...whole, content: [], stop_reason: null, usage: { input_tokens: 100, output_tokens: 1 } },
    },
    ...whole.content.flatMap((content_block, index) => [
      { type: 'content_block_start', index, content_block },
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: whole.usage },
    { type: 'message_stop' },
  ].map(frame)
}

describe('tools of messages', () => {
  test.each([
    [
      'searches that are reported',
      [block('web_search')],
      { server_tool_use: { web_search_requests: 2 } },
      2 * LISTED.search,
    ],
    ['searches by their blocks', [block('web_search', 'a'), block('web_search', 'b')], {}, 2 * LISTED.search],
    [
      'none that failed, as reported',
      [block('web_search')],
      { server_tool_use: { web_search_requests: 0 } },
      0,
    ],
    ['fetches, which cost nothing', [block('web_fetch')], { server_tool_use: { web_fetch_requests: 1 } }, 0],
    [
      'a container, however often it ran',
      [block('bash_code_execution'), block('text_editor_code_execution')],
      {},
      LISTED.container,
    ],
    ['searches for tools', [block('tool_search_tool_regex')], {}, 0],
  ])(
    'tools that the messages API ran are charged, for whole and streamed calls: %s',
    async (_, content, usage, quota) => {
      fixture.upstream.script('m', json(message(content, usage)))
      expect((await row(await CLIENTS.messages({}))).quota).toBe(TOKENS + quota)
      fixture.upstream.script('m', {
        kind: 'stream',
        frames: messageFrames(content, usage),
        ending: 'no done',
      })
      expect((await row(await CLIENTS.messages({ stream: true }))).quota).toBe(TOKENS + quota)
    },
  )
})

describe("Anthropic's code execution beside its web tools", () => {
  const running = { type: 'code_execution_20260120', name: 'code_execution' }
  const web = (type: string): object => ({ type, name: type.replace(/_\d+$/, ''), max_uses: 1 })
  test.each<[string, object[], number]>([
    ['free beside a search of 2026', [running, web('web_search_20260209')], 0],
    ['free beside a fetch of 2026', [running, web('web_fetch_20260209')], 0],
    ['free beside a later one', [web('web_search_20270101'), running], 0],
    ['free where the search alone runs it', [web('web_search_20260209')], 0],
    ['charged beside an older search', [running, web('web_search_20250305')], LISTED.container],
    ['charged beside an older fetch', [running, web('web_fetch_20260208')], LISTED.container],
    ['charged alone', [running], LISTED.container],
  ])(
    "Anthropic's code execution is %s, in the charge and in the hold, for whole and streamed calls",
    async (_, tools, quota) => {
      const content = [block('web_search'), block('bash_code_execution')]
      const usage = { server_tool_use: { web_search_requests: 0, code_execution_requests: 3 } }
      fixture.upstream.script('m', json(message(content, usage)))
      expect((await row(await CLIENTS.messages({ tools }))).quota).toBe(TOKENS + quota)
      fixture.upstream.script('m', {
        kind: 'stream',
        frames: messageFrames(content, usage),
        ending: 'no done',
      })
      expect((await row(await CLIENTS.messages({ tools, stream: true }))).quota).toBe(TOKENS + quota)
      const nothing = message([], { input_tokens: 0, output_tokens: 0 })
      fixture.upstream.script('m', json(nothing))
      const { status } = await fixture.chat(
        'poor',
        { model: 'm-uses', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }], tools },
        { path: '/v1/messages' },
      )
      // Four containers are 100,000 units, and the key has 25,000.
      expect(status).toBe(quota === 0 ? 200 : 403)
    },
  )
})

const answer = (candidate: object): object => ({
  candidates: [
    { content: { role: 'model', parts: [{ text: 'said' }] }, finishReason: 'STOP', index: 0, ...candidate },
  ],
  usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 110 },
})
const QUERIES = { groundingMetadata: { webSearchQueries: ['a', 'b'] } }
const PAGES = { groundingMetadata: { groundingChunks: [{ web: { uri: 'x' } }, { web: { uri: 'y' } }] } }
const ADDRESSES = { urlContextMetadata: { urlMetadata: [{}, {}] } }

describe("Anthropic's advisor, on a channel that allows other models", () => {
  const tools = [{ type: 'advisor_20260301', name: 'advisor', model: 'r', max_uses: 2, max_tokens: 1_000 }]
  const entry = { type: 'advisor_message', model: 'r', input_tokens: 500, output_tokens: 20 }
  const usage = { iterations: [{ type: 'message', input_tokens: 100, output_tokens: 10 }, entry] }
  const ask = (key: string, fields: object = {}): Promise<FullResponse> =>
    fixture.chat(
      key,
      { model: 'advised', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }], tools, ...fields },
      { path: '/v1/messages' },
    )

  test('is charged at the price of its model, for whole and streamed calls', async () => {
    fixture.upstream.script('advised', json(message([], usage)))
    const charged = await row(await ask('ann'))
    expect(JSON.parse(fixture.upstream.only('advised').text).tools).toEqual(tools)
    expect(charged).toMatchObject({ quota: TOKENS + 500 + 20 * 4, price_incomplete: false })
    expect(charged.cost).toContainEqual(expect.objectContaining({ kind: 'advisor_output', count: 20 }))
    fixture.upstream.script('advised', {
      kind: 'stream',
      frames: messageFrames([], usage),
      ending: 'no done',
    })
    expect((await row(await ask('ann', { stream: true }))).quota).toBe(TOKENS + 500 + 20 * 4)
  })

  test('is held at the context and the output of its model for each use, also in a stream', async () => {
    for (const stream of [false, true]) {
      const { status, text } = await ask('poor', { stream })
      expect(status).toBe(403)
      // Two uses of 200,000 tokens that may be written to a cache for an hour, and of 1,000 tokens of output.
      expect(Number(/(\d+) are needed/.exec(text)?.[1])).toBeGreaterThan(2 * (200_000 * 2 + 1_000 * 4))
    }
  })

  test('whose tokens are not plausible is charged as what the call held', async () => {
    const iterations = [{ ...entry, input_tokens: 1_000_000_000 }]
    fixture.upstream.script('advised', json(message([], { iterations })))
    expect(await row(await ask('ann'))).toMatchObject({ note: 'usage_implausible' })
  })

  test.each<[string, number, number, string]>([
    ['ten times its uses', 20, 1, ''],
    ['more than ten times its uses', 21, 1, 'usage_implausible'],
    ['fewer tokens than are plausible together', 2, 4_000_000, ''],
    ['more tokens than are plausible together', 2, 6_000_000, 'usage_implausible'],
  ])('is believed by the sum of all its uses: %s', async (_, uses, tokens, note) => {
    const iterations = Array.from({ length: uses }, () => ({ ...entry, input_tokens: tokens }))
    fixture.upstream.script('advised', json(message([], { iterations })))
    expect(await row(await ask('ann'))).toMatchObject({ note })
  })

  test('is charged at the price of the offered model where the reported one has none', async () => {
    for (const model of ['r-20260301-without-price', undefined]) {
      fixture.upstream.script('advised', json(message([], { iterations: [{ ...entry, model }] })))
      expect(await row(await ask('ann'))).toMatchObject({
        quota: TOKENS + 500 + 20 * 4,
        price_incomplete: false,
      })
    }
  })

  test('has an incomplete price where neither the offered model nor the reported one has a price', async () => {
    const iterations = [{ ...entry, model: 'without-price' }]
    for (const offered of [[], [{ ...tools[0], model: 'also-without-price' }]]) {
      fixture.upstream.script('advised', json(message([], { iterations })))
      const charged = await row(await ask('ann', { tools: offered }))
      expect(charged).toMatchObject({ quota: TOKENS, price_incomplete: true })
    }
  })
})

test("an answer of Anthropic's fallback is charged at the price of the call's model, with an incomplete price", async () => {
  const fallbacks = [{ model: 'r' }]
  const body = { model: 'advised', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }], fallbacks }
  const declined = { type: 'message', model: 'advised', input_tokens: 100, output_tokens: 0 }
  const entry = { type: 'fallback_message', model: 'r', input_tokens: 100, output_tokens: 10 }
  const usage = { iterations: [declined, entry] }
  const expected = { quota: TOKENS, price_incomplete: true }
  fixture.upstream.script('advised', json(message([], usage)))
  expect(await row(await fixture.chat('ann', body, { path: '/v1/messages' }))).toMatchObject(expected)
  expect(JSON.parse(fixture.upstream.only('advised').text).fallbacks).toEqual(fallbacks)
  fixture.upstream.script('advised', {
    kind: 'stream',
    frames: messageFrames([], usage),
    ending: 'no done',
  })
  const streamed = await fixture.chat('ann', { ...body, stream: true }, { path: '/v1/messages' })
  expect(await row(streamed)).toMatchObject(expected)
})

describe('tools of gemini', () => {
  test.each([
    ['queries', 'gemini-3-pro', QUERIES, 2 * 7_000],
    ['a grounded prompt', 'gemini-2.5-flash', QUERIES, 17_500],
    [
      'maps',
      'gemini-3-pro',
      { groundingMetadata: { groundingChunks: [{ maps: { uri: 'x' } }] } },
      LISTED.maps,
    ],
    ['addresses, which cost nothing', 'gemini-3-pro', { urlContextMetadata: { urlMetadata: [{}, {}] } }, 0],
    ['cited pages, without queries', 'gemini-3-pro', PAGES, 7_000],
    ['cited pages that are the addresses', 'gemini-3-pro', { ...PAGES, ...ADDRESSES }, 0],
    [
      'addresses and queries',
      'gemini-3-pro',
      { groundingMetadata: { ...PAGES.groundingMetadata, ...QUERIES.groundingMetadata }, ...ADDRESSES },
      2 * 7_000,
    ],
    [
      'code, which costs its tokens',
      'gemini-3-pro',
      { content: { role: 'model', parts: [{ executableCode: { code: '1' } }, { text: 'said' }] } },
      0,
    ],
  ])(
    'tools that the Gemini API ran are charged, for whole and streamed calls: %s',
    async (_, model, candidate, quota) => {
      fixture.upstream.script('g', json(answer(candidate)))
      expect((await row(await gemini(model, {}))).quota).toBe(TOKENS + quota)
      fixture.upstream.script('g', {
        kind: 'stream',
        frames: [frame(answer(candidate)), frame(answer(candidate))],
        ending: 'no done',
      })
      expect((await row(await gemini(model, {}, true))).quota).toBe(TOKENS + quota)
    },
  )
})

const CITED = [
  {
    type: 'url_citation',
    url_citation: { url: 'https://example.com', title: 'x', start_index: 0, end_index: 1 },
  },
]
const cited = JSON.stringify({
  ...JSON.parse(completionText('said', usageText(100, 10))),
  choices: [
    { index: 0, message: { role: 'assistant', content: 'said', annotations: CITED }, finish_reason: 'stop' },
  ],
})
const citedFrame = contentFrame('said').replace(
  '"content":"said"',
  `"content":"said","annotations":${JSON.stringify(CITED)}`,
)
const chatFrames = [citedFrame, finishFrame(), finishFrame(usageText(100, 10)), DONE_FRAME]

test.each([
  ['after', [PAGES, ADDRESSES], 0],
  ['before', [ADDRESSES, PAGES], 0],
  ['after, and then queries', [PAGES, ADDRESSES, QUERIES], 2 * 7_000],
  ['after queries', [QUERIES, ADDRESSES, PAGES], 2 * 7_000],
] as const)(
  'pages that a Gemini stream cites are no search if it has read addresses, named in another chunk: %s',
  async (_, parts, quota) => {
    const frames = parts.map((part) => frame(answer(part)))
    for (const drip of [false, true]) {
      fixture.upstream.script('g', { kind: 'stream', frames, drip, ending: 'no done' })
      const tools = [{ url_context: {} }]
      expect((await row(await gemini('gemini-3-pro', { tools }, true))).quota).toBe(TOKENS + quota)
    }
  },
)

describe('a search of chat', () => {
  test.each([
    ['one that was requested', { web_search_options: {} }, LISTED.search],
    ['none that was not requested', {}, 0],
    ['none whose request was removed', { search_parameters: { mode: 'on' } }, 0],
  ])(
    'a web search of a chat completion is charged by the citations in the answer: %s',
    async (_, fields, quota) => {
      fixture.upstream.script('c', { kind: 'whole', body: cited })
      expect((await row(await CLIENTS.chat(fields))).quota).toBe(TOKENS + quota)
      fixture.upstream.script('c', { kind: 'stream', frames: chatFrames })
      expect((await row(await CLIENTS.chat({ ...fields, stream: true }))).quota).toBe(TOKENS + quota)
    },
  )
})

describe('converted calls', () => {
  test("a call that is converted is charged for the tool uses that its provider ran, at that provider's prices", async () => {
    fixture.upstream.script(
      'm',
      json(message([block('web_search')], { server_tool_use: { web_search_requests: 2 } })),
    )
    const tools = [
      { type: 'web_search' },
      { type: 'code_interpreter', container: { type: 'auto' } },
      { type: 'new_thing' },
    ]
    const converted = await row(await CLIENTS.responses({ model: 'm', tools }))
    // A tool that a conversion leaves out costs nothing, and is not an unpriced tool.
    expect(converted).toMatchObject({
      quota: TOKENS + 2 * LISTED.search,
      web_searches: 2,
      price_incomplete: false,
    })
    fixture.upstream.script('g', json(answer(QUERIES)))
    const searched = await row(
      await CLIENTS.responses({ model: 'gemini-3-pro', tools: [{ type: 'web_search' }] }),
    )
    expect(searched).toMatchObject({ quota: TOKENS + 2 * 7_000, web_searches: 2 })
  })
})

/** Frames of responses with a search, and the uses that they report. */
const SHOWN = {
  r: [responseFrames([searched('a'), searched('b'), ran('c')]), ['web_search', 2], ['code_interpreter', 1]],
  m: [
    messageFrames([block('web_search', 'a'), block('web_search', 'b'), block('bash_code_execution')]),
    ['web_search', 2],
    ['code_execution', 1],
  ],
  'gemini-3-pro': [[frame(answer(QUERIES))], ['google_search', 2]],
  c: [chatFrames, ['web_search', 1]],
} as const
type Upstream = keyof typeof SHOWN
const GEMINI_BEGUN: object = {
  candidates: [{ content: { role: 'model', parts: [{ text: 'said' }] }, index: 0, ...QUERIES }],
}
/** The frames before a client leaves, unless these are all except the last two. */
const BEGUN: Partial<Record<Upstream, readonly string[]>> = {
  r: SHOWN.r[0].slice(0, -1),
  c: [citedFrame],
  'gemini-3-pro': [frame(GEMINI_BEGUN)],
}
const SAID = { messages: [{ role: 'user', content: 'hi' }] }
/** Requests for a search, by the dialects of clients. */
const SEARCHING: Readonly<Record<string, object>> = {
  '/v1/chat/completions': { ...SAID, web_search_options: {} },
  '/v1/messages': {
    ...SAID,
    max_tokens: 9,
    tools: [{ type: 'web_search_20250305', name: 'web_search' }],
  },
  '/v1/responses': { input: 'hi', tools: [{ type: 'web_search' }] },
  '/v1beta/models/:': { contents: [{ parts: [{ text: 'hi' }] }], tools: [{ googleSearch: {} }] },
}
const ROADS = Object.keys(SEARCHING).flatMap((client) =>
  (Object.keys(SHOWN) as Upstream[]).map((model) => [client, model] as const),
)
/** The uses that are charged: a chat model that cannot search gets no search request. */
const usesOf = (client: string, model: Upstream) =>
  client === '/v1/responses' && model === 'c' ? [] : SHOWN[model].slice(1)
const laneOf = (model: Upstream): string => (model === 'gemini-3-pro' ? 'g' : model)

/** A streamed call of a client for a model of any dialect. */
async function searchFor(client: string, model: Upstream) {
  const isGemini = client.endsWith(':')
  const body = { ...(!isGemini && { model, stream: true }), ...SEARCHING[client] }
  const path = isGemini ? `/v1beta/models/${model}:streamGenerateContent?alt=sse` : client
  return fixture.live('ann', body, { path })
}

describe('a streamed search through any pair of dialects', () => {
  test.each(ROADS)(
    'web searches of a streamed call are charged as the upstream reports them: %s to %s',
    async (client, model) => {
      const [frames] = SHOWN[model]
      fixture.upstream.script(laneOf(model), { kind: 'stream', frames, ending: 'no done' })
      const live = await searchFor(client, model)
      expect((await live.end()).broken).toBe(false)
      const { cost, reason } = await rowOf(String(live.headers['x-request-id']))
      expect(reason).toBe('complete')
      expect(cost?.slice(2).map(({ kind, count }) => [kind, count])).toEqual(usesOf(client, model))
    },
  )

  test.each(ROADS)(
    'web searches that were reported before the client left the stream are charged: %s to %s',
    async (client, model) => {
      const [frames] = SHOWN[model]
      const begun = BEGUN[model] ?? frames.slice(0, -2)
      fixture.upstream.script(laneOf(model), { kind: 'stream', frames: begun, ending: 'stall' })
      const live = await searchFor(client, model)
      await live.until('said')
      await sleep(CERTAINLY_GONE_MS)
      live.abort()
      const id = String(live.headers['x-request-id'])
      const { cost, reason } = await vi.waitFor(() => rowOf(id), 60_000)
      expect(reason).toBe('client_gone')
      expect(cost?.slice(2).map(({ kind, count }) => [kind, count])).toEqual(usesOf(client, model))
    },
  )
})

describe('the hold for tools', () => {
  /** Whether a key with 25,000 units may make the call. */
  const affords = async (path: string, body: object): Promise<boolean> => {
    const { status, text } = await fixture.chat('poor', body, { path })
    if (status !== 200) expect(JSON.parse(text).error.code).toBe('insufficient_quota')
    return status === 200
  }
  const asked = (tools: readonly object[], more: object = {}): object => ({
    model: 'r-uses',
    input: 'hi',
    max_output_tokens: 16,
    tools,
    ...more,
  })
  const files = [{ type: 'file_search', vector_store_ids: [] }]
  const searching = [{ type: 'web_search' }]

  test('the hold of a call without stream covers as many tool uses as the request allows, by default four', async () => {
    fixture.upstream.script(
      'r',
      json(response([], { usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0 }, output: [] })),
    )
    // Four searches are 20,000 units, code in four containers 60,000.
    expect(await affords('/v1/responses', asked(searching))).toBe(true)
    expect(await affords('/v1/responses', asked([...searching, ...searching]))).toBe(false)
    expect(await affords('/v1/responses', asked([...searching, ...searching], { max_tool_calls: 4 }))).toBe(
      true,
    )
    expect(await affords('/v1/responses', asked(searching, { max_tool_calls: 6 }))).toBe(false)
    expect(await affords('/v1/responses', asked(files, { max_tool_calls: 12 }))).toBe(true)
    const fetching = { model: 'm-uses', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }
    fixture.upstream.script('m', json(message([], { input_tokens: 0, output_tokens: 0 })))
    for (const [maxUses, isAffordable] of [
      [2, true],
      [6, false],
    ] as const) {
      const tools = [{ type: 'web_search_20250305', name: 'web_search', max_uses: maxUses }]
      expect(await affords('/v1/messages', { ...fetching, tools })).toBe(isAffordable)
    }
  })

  test.each([
    ['an item that adds tools', { type: 'additional_tools', role: 'developer' }],
    ['the result of a search for tools', { type: 'tool_search_output', execution: 'client', call_id: 'c' }],
  ])(
    'the hold of a call covers the tools that an input item of the request makes available: %s',
    async (_, item) => {
      fixture.upstream.script('r', json(response([], { usage: { input_tokens: 0, output_tokens: 0 } })))
      const input = (tools: readonly object[]): object => ({
        ...asked([]),
        input: [
          { role: 'user', content: 'hi' },
          { ...item, tools },
        ],
      })
      expect(await affords('/v1/responses', input(searching))).toBe(true)
      expect(await affords('/v1/responses', input([...searching, ...searching]))).toBe(false)
      const nested = { type: 'namespace', name: 'n', tools: [...searching, { type: 'function', name: 'f' }] }
      expect(await affords('/v1/responses', input([...searching, nested]))).toBe(false)
      expect(await affords('/v1/responses', asked([nested]))).toBe(true)
      expect(await affords('/v1/responses', asked([nested, nested]))).toBe(false)
    },
  )

  test('the hold of a stream grows with each tool use, and a stream whose hold cannot grow ends in an error', async () => {
    const found = Array.from({ length: 8 }, (_, at) =>
      item('web_search_call', { id: `ws_${at}`, action: { type: 'search' } }),
    )
    // A stream whose end has arrived is charged, and needs no hold any more. This one does not end by itself.
    const frames = responseFrames(found).slice(0, -1)
    const finished = Promise.withResolvers<void>()
    onTestFinished(() => finished.resolve())
    fixture.upstream.script('r', { kind: 'stream', frames, endsAfter: finished.promise, ending: 'no done' })
    const ended = await fixture.chat('poor', { ...asked(searching), stream: true }, { path: '/v1/responses' })
    expect(ended.text).toContain('response.failed')
    const { quota, reason } = await row(ended)
    expect(reason).toBe('cut')
    // The use that the hold could not pay for had begun, so that the provider bills it.
    expect(quota).toBeGreaterThanOrEqual(5 * LISTED.search)
  })

  test('the metric of exceeded holds counts calls whose provider used tools more often than the hold covered', async () => {
    const exceeded = async (): Promise<number> =>
      (await metricsOf(fixture.gateway.url)).sum('sluice_hold_exceeded_total', { model: 'r-uses' })
    const before = await exceeded()
    fixture.upstream.script('r', json(response([], { tool_usage: { web_search: { num_requests: 9 } } })))
    const fields = { model: 'r-uses', tools: searching, max_tool_calls: 2, max_output_tokens: 16 }
    expect((await row(await CLIENTS.responses(fields))).quota).toBe(10 * 4 + 9 * LISTED.search)
    expect(await exceeded()).toBe(before + 1)
    const used = response([], { tool_usage: { web_search: { num_requests: 9 } } })
    fixture.upstream.script('r', json(response([], { status: 'queued', usage: null })), json(used))
    const begun = await CLIENTS.responses({ ...fields, background: true })
    expect(await exceeded()).toBe(before + 1)
    await fixture.chat('ann', '', { path: `/v1/responses/${begun.json().id}`, method: 'GET' })
    expect((await row(begun)).quota).toBe(10 * 4 + 9 * LISTED.search)
    expect(await exceeded()).toBe(before + 2)
  })
})

describe('an unlisted tool', () => {
  test('a tool without a known price is sent upstream without conversion, and marks the price in the usage row incomplete', async () => {
    fixture.upstream.script('r', json(response([])))
    const tools = [{ type: 'new_thing', depth: 3 }]
    const called = await row(await CLIENTS.responses({ tools }))
    expect(called).toMatchObject({ quota: TOKENS, price_incomplete: true })
    expect(JSON.parse(fixture.upstream.only('r').text)).toMatchObject({ tools })
    const list = await manage<{ items: readonly { price_incomplete: boolean }[] }>(
      fixture.gateway.url,
      ADMIN,
      'GET /api/log/',
    )
    expect(list.data.items[0]).toMatchObject({ price_incomplete: true })
  })

  test.each([
    [
      'responses',
      [
        { type: 'function', name: 'f' },
        { type: 'custom', name: 'g' },
        { type: 'namespace', name: 'n', tools: [] },
      ],
    ],
    [
      'responses',
      [{ type: 'local_shell' }, { type: 'shell', environment: { type: 'local' } }, { type: 'apply_patch' }],
    ],
    ['responses', [{ type: 'tool_search', execution: 'client' }, { type: 'computer_use_preview' }]],
    [
      'messages',
      [
        { type: 'bash_20250124', name: 'bash' },
        { type: 'text_editor_20250728', name: 'e' },
      ],
    ],
    [
      'messages',
      [
        { type: 'computer_20251124', name: 'c' },
        { type: 'memory_20250818', name: 'm' },
      ],
    ],
    [
      'chat',
      [
        { type: 'function', function: { name: 'f' } },
        { type: 'custom', custom: { name: 'g' } },
      ],
    ],
  ] as const)(
    'a tool that the client itself runs needs no price, and does not mark the price incomplete: %s %j',
    async (client, tools) => {
      fixture.upstream.script('r', json(response([])))
      fixture.upstream.script('m', json(message([])))
      fixture.upstream.script('c', { kind: 'whole', content: 'said', usage: usageText(100, 10) })
      expect(await row(await CLIENTS[client]({ tools }))).toMatchObject({
        quota: TOKENS,
        price_incomplete: false,
      })
    },
  )
})

describe('a tool that a conversion leaves out', () => {
  const GIVEN: Readonly<Record<string, object>> = {
    '/v1/chat/completions': { ...SAID, tools: [{ type: 'new_thing' }], plugins: [{ id: 'web' }] },
    '/v1/messages': {
      ...SAID,
      max_tokens: 9,
      tools: [
        { type: 'code_execution_20250825', name: 'code_execution' },
        { type: 'new_thing', name: 'n' },
      ],
      mcp_servers: [{ type: 'url', name: 'x', url: 'https://example.com' }],
    },
    '/v1/responses': {
      input: [
        { role: 'user', content: 'hi' },
        { type: 'additional_tools', role: 'developer', tools: [{ type: 'new_thing' }] },
      ],
      tools: [{ type: 'code_interpreter', container: { type: 'auto' } }, { type: 'image_generation' }],
    },
    '/v1beta/models/:': {
      contents: [{ parts: [{ text: 'hi' }] }],
      tools: [{ codeExecution: {} }, { newThing: {} }, { googleMaps: {} }],
    },
  }
  const PLAIN = {
    r: json(response([])),
    m: json(message([])),
    'gemini-3-pro': json(answer({})),
    c: { kind: 'whole', content: 'said', usage: usageText(100, 10) },
  } as const
  const OWN: Readonly<Record<string, Upstream>> = {
    '/v1/chat/completions': 'c',
    '/v1/messages': 'm',
    '/v1/responses': 'r',
    '/v1beta/models/:': 'gemini-3-pro',
  }
  test.each(ROADS.filter(([client, model]) => OWN[client] !== model))(
    'a tool that the conversion between two APIs leaves out is neither charged nor part of the hold: %s to %s',
    async (client, model) => {
      fixture.upstream.script(laneOf(model), PLAIN[model])
      const isGemini = client.endsWith(':')
      const path = isGemini ? `/v1beta/models/${model}:generateContent` : client
      const called = await fixture.chat('small', { ...(!isGemini && { model }), ...GIVEN[client] }, { path })
      expect(await row(called)).toMatchObject({ quota: TOKENS, price_incomplete: false })
      expect(fixture.upstream.only(laneOf(model)).text).not.toContain('new_thing')
    },
  )
})

// The last test, as it changes the configuration.
test("the operator's tool prices apply, 0 makes a tool free, and tools without a price can be refused", async () => {
  await fixture.gateway.apply({
    options: { retries: 0, unknown_tools: 'refuse' },
    models: { r: { price: STATED }, m: { price: STATED }, c: { price: { ...price, web_search: 0.002 } } },
    channels: [
      channel('r', fixture.upstream.baseUrl('r'), { protocol: 'responses' }),
      channel('m', fixture.upstream.baseUrl('m'), { protocol: 'messages' }),
      channel('c', fixture.upstream.baseUrl('c')),
    ],
    users: [],
  })
  const drawing = { tool_usage: { image_gen: IMAGE_TOKENS } }
  fixture.upstream.script(
    'r',
    json(response([drawn('1024x1024', 'low'), item('mcp_call'), ran('a')], drawing)),
  )
  expect((await row(await CLIENTS.responses({}))).quota).toBe(TOKENS + 20_000 + 500)
  fixture.upstream.script('m', json(message([], { server_tool_use: { web_fetch_requests: 3 } })))
  expect((await row(await CLIENTS.messages({}))).quota).toBe(TOKENS + 3_000)
  fixture.upstream.script('c', { kind: 'whole', body: cited })
  expect((await row(await CLIENTS.chat({ web_search_options: {} }))).quota).toBe(TOKENS + 1_000)
  const refused = await CLIENTS.responses({ tools: [{ type: 'new_thing' }] })
  expect(refused.status).toBe(400)
  expect(refused.json().error).toMatchObject({
    code: 'tool_not_priced',
    message: expect.stringContaining('new_thing'),
  })
  // A converted call leaves it out.
  fixture.upstream.script('m', json(message([])))
  expect((await CLIENTS.responses({ model: 'm', tools: [{ type: 'new_thing' }] })).status).toBe(200)
})
