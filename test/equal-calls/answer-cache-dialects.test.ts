import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call, type CallOptions, type FullResponse } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

const MODELS = [
  'chat',
  'messages',
  'responses',
  'gemini',
  'vectors',
  'ranks',
  'moderate',
  'priced',
  'first',
  'second',
  'stored',
]
const ROOT_MESSAGE = { role: 'user', content: 'hi' }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { cache: { ttl: '10m', scope: 'group', price: 0.25 } },
    models: { ...priced(MODELS), first: { ...(priced(['first'])['first'] as object), fallback: ['second'] } },
    groups: { vip: {} },
    channels: [
      ...MODELS.filter((name) => !['ranks', 'messages', 'stored', 'gemini'].includes(name)).map((name) =>
        channel(name, upstream.baseUrl(name), { groups: ['default', 'vip'] }),
      ),
      channel('messages', upstream.baseUrl('messages'), { protocol: 'messages', groups: ['default', 'vip'] }),
      channel('gemini', upstream.baseUrl('gemini'), { protocol: 'gemini' }),
      channel('stored', upstream.baseUrl('stored'), { protocol: 'responses' }),
      channel('ranks', upstream.baseUrl('ranks'), { protocol: 'rerank' }),
    ],
    users: [
      ROOT,
      ADMIN_USER,
      user(2, 'ann', [token('ann'), token('poor', { remain_quota: 5 })]),
      user(5, 'bob', [token('bob')]),
      user(6, 'vip', [token('vip')], { group: 'vip' }),
    ],
  }))
})
afterAll(() => fixture?.close())

const asked = (lane: string): number => fixture.upstream.received(lane).length
const statusOf = ({ headers }: FullResponse): unknown => headers['x-gateway-cache']
const ask = (path: string, body: object, key = 'ann', more: CallOptions = {}): Promise<FullResponse> =>
  call(fixture.gateway.url, body, { path, key, ...more })

describe.each([
  ['/v1/messages', { model: 'chat', max_tokens: 9, messages: [ROOT_MESSAGE] }],
  ['/v1/responses', { model: 'chat', input: 'hi' }],
  ['/v1/chat/completions', { model: 'messages', max_tokens: 9, messages: [ROOT_MESSAGE] }],
] as const)('converted calls at %s', (path, body) => {
  test('a whole converted call and a streamed one with the same body share a cached answer', async () => {
    const lane = body.model
    if (lane === 'messages')
      fixture.upstream.script(lane, {
        kind: 'whole',
        body: JSON.stringify({
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: 'm',
          content: [{ type: 'text', text: 'Hello there' }],
          stop_reason: 'end_turn',
          stop_sequence: null,
          usage: { input_tokens: 3, output_tokens: 2 },
        }),
      })
    else fixture.upstream.script(lane, { kind: 'whole', content: 'Hello there' })
    const before = asked(lane)
    const first = await ask(path, body)
    const second = await ask(path, body, 'bob')
    const stream = await ask(path, { ...body, stream: true })
    expect([first, second, stream].map(statusOf)).toEqual(['miss', 'hit', 'hit'])
    expect(asked(lane) - before).toBe(1)
    expect(stream.headers['content-type']).toBe('text/event-stream')
    expect(stream.text).toContain('Hello there')
    const idOf = (answer: FullResponse): unknown => answer.json().id
    if (path === '/v1/responses') {
      expect(idOf(second)).not.toBe(idOf(first))
      expect(second.text.replace(String(idOf(second)), String(idOf(first)))).toBe(first.text)
      expect(stream.text).not.toContain(String(idOf(first)))
    } else expect(second.text).toBe(first.text)
  })
})

describe('Gemini', () => {
  const body = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }
  const whole = {
    candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'Hello' }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
    modelVersion: 'g',
  }

  test('Gemini calls for a whole answer, for a stream and for an array share one cached answer', async () => {
    fixture.upstream.script('gemini', { kind: 'whole', body: JSON.stringify(whole) })
    const first = await ask('/v1beta/models/gemini:generateContent', body)
    const events = await ask('/v1beta/models/gemini:streamGenerateContent?alt=sse', body)
    const array = await ask('/v1beta/models/gemini:streamGenerateContent', body)
    expect([first, events, array].map(statusOf)).toEqual(['miss', 'hit', 'hit'])
    expect(events.text).toBe(`data: ${JSON.stringify(whole)}\n\n`)
    expect(JSON.parse(array.text)).toEqual([whole])
    expect(array.headers['content-type']).toBe('application/json')
    expect(asked('gemini')).toBe(1)
  })
})

describe('endpoints without streams', () => {
  test.each([
    [
      '/v1/embeddings',
      'vectors',
      { model: 'vectors', input: 'hi' },
      {
        object: 'list',
        data: [{ object: 'embedding', index: 0, embedding: [0.5, 1] }],
        model: 'v',
        usage: { prompt_tokens: 2, total_tokens: 2 },
      },
    ],
    [
      '/v1/rerank',
      'ranks',
      { model: 'ranks', query: 'q', documents: ['a', 'b'] },
      {
        results: [
          { index: 0, relevance_score: 0.5 },
          { index: 1, relevance_score: 0.2 },
        ],
        usage: { total_tokens: 3 },
      },
    ],
    [
      '/v1/moderations',
      'moderate',
      { model: 'moderate', input: 'hi' },
      { id: 'm', model: 'moderate', results: [{ flagged: false, categories: {}, category_scores: {} }] },
    ],
  ] as const)('answers at %s are cached', async (path, lane, body, answer) => {
    fixture.upstream.script(lane, { kind: 'whole', body: JSON.stringify(answer) })
    const [first, second] = [await ask(path, body), await ask(path, body)]
    expect([first.status, statusOf(first), statusOf(second)]).toEqual([200, 'miss', 'hit'])
    expect(second.text).toBe(first.text)
    expect(asked(lane)).toBe(1)
  })

  test('/v1/rerank and /v2/rerank do not share cached answers', async () => {
    expect(statusOf(await ask('/v2/rerank', { model: 'ranks', query: 'q', documents: ['a', 'b'] }))).toBe(
      'miss',
    )
  })

  test.each([
    ['/v1/messages/count_tokens', { model: 'messages', messages: [ROOT_MESSAGE] }],
    ['/v1/responses/compact', { model: 'stored', input: 'hi' }],
  ])('a call at %s bypasses the answer cache', async (path, body) => {
    fixture.upstream.script('messages', { kind: 'whole', body: '{"input_tokens":3}' })
    fixture.upstream.script('stored', {
      kind: 'whole',
      body: '{"id":"r","object":"response.compaction","output":[],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}',
    })
    expect(statusOf(await ask(path, body))).toBe('bypass')
  })
})

describe('responses that somebody may continue', () => {
  const answer = (store: boolean) =>
    JSON.stringify({
      id: 'resp_provider',
      object: 'response',
      status: 'completed',
      model: 'm',
      store,
      output: [
        {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: 'Hello', annotations: [] }],
        },
      ],
      usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
    })

  test.each([
    ['that its channel stores', { model: 'stored', input: 'a' }],
    [
      'that continues another one',
      { model: 'chat', input: 'a', store: false, previous_response_id: 'resp_unknown' },
    ],
  ])('a response %s is not cached', async (_what, body) => {
    fixture.upstream.script('stored', { kind: 'whole', body: answer(true) })
    const [first, second] = [await ask('/v1/responses', body), await ask('/v1/responses', body)]
    for (const one of [first, second]) expect(['bypass', undefined]).toContain(statusOf(one))
  })

  test('a response with store: false is cached, and each cached copy has its own id', async () => {
    fixture.upstream.script('stored', { kind: 'whole', body: answer(false) })
    const body = { model: 'stored', input: 'b', store: false }
    const answers = [
      await ask('/v1/responses', body),
      await ask('/v1/responses', body),
      await ask('/v1/responses', body),
    ]
    expect(answers.map(statusOf)).toEqual(['miss', 'hit', 'hit'])
    expect(new Set(answers.map((one) => one.json().id)).size).toBe(3)
    expect(asked('stored')).toBe(1)
  })
})

describe('what a response repeats of its request', () => {
  const OF_ANN = { metadata: { customer: 'ACME' }, prompt_cache_key: 'key-of-ann' }
  const OF_BOB = { metadata: { customer: 'Globex "2"', $1: '$&' }, prompt_cache_key: 'key-of-bob' }
  const NOTHING = { metadata: {}, prompt_cache_key: null }
  const repeatedIn = (answer: object) => {
    const { metadata, prompt_cache_key } = answer as Record<string, unknown>
    return { metadata, prompt_cache_key }
  }
  const responsesIn = (text: string): object[] =>
    [...text.matchAll(/^data: (\{.*)$/gm)].flatMap(([, data = '']) => {
      const { response } = JSON.parse(data) as { response?: object }
      return response ? [response] : []
    })
  const response = (status: string) => ({
    id: 'resp_provider',
    object: 'response',
    status,
    model: 'm',
    store: false,
    ...OF_ANN,
    output: [
      {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'the "metadata" of a "response"', annotations: [] }],
      },
    ],
    usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
  })

  test.each([
    ['of a channel that speaks responses', 'stored'],
    ['that is converted', 'chat'],
  ])('a cached response %s repeats the members of the request that it answers', async (_, model) => {
    if (model === 'stored')
      fixture.upstream.script(model, { kind: 'whole', body: JSON.stringify(response('completed'), null, 2) })
    const body = { model, input: 'repeat whole', store: false }
    const first = await ask('/v1/responses', { ...body, ...OF_ANN })
    const second = await ask('/v1/responses', { ...body, ...OF_BOB }, 'bob')
    const third = await ask('/v1/responses', { ...body, metadata: null }, 'bob')
    const stream = await ask('/v1/responses', { ...body, ...OF_BOB, stream: true }, 'bob')
    expect([first, second, third, stream].map(statusOf)).toEqual(['miss', 'hit', 'hit', 'hit'])
    expect([first, second, third].map((one) => repeatedIn(one.json()))).toEqual([OF_ANN, OF_BOB, NOTHING])
    expect(responsesIn(stream.text).map(repeatedIn)).toEqual([OF_BOB, OF_BOB, OF_BOB])
    expect(second.json()).toEqual({ ...first.json(), ...OF_BOB, id: second.json().id as string })
  })

  test('each event of a cached stream repeats the members of the request that it answers', async () => {
    const events = [
      `data: ${JSON.stringify({ type: 'response.created', response: response('in_progress') })}`,
      'data: {"type":"response.output_text.delta","output_index":0,"delta":"a \\"response\\""}',
      JSON.stringify({ type: 'response.completed', response: response('completed') }, null, 1)
        .split('\n')
        .map((line) => `data: ${line}`)
        .join('\n'),
    ]
    fixture.upstream.script('stored', {
      kind: 'whole',
      body: events.map((event) => `${event}\n\n`).join(''),
    })
    const body = { model: 'stored', input: 'repeat stream', store: false, stream: true }
    const first = await ask('/v1/responses', { ...body, ...OF_ANN })
    const second = await ask('/v1/responses', { ...body, ...OF_BOB }, 'bob')
    const whole = await ask('/v1/responses', { ...body, ...OF_BOB, stream: false }, 'bob')
    const spaced = JSON.stringify({ ...body, ...OF_BOB }, null, 2).replaceAll('\n', '\r\n')
    const third = await call(fixture.gateway.url, spaced, { path: '/v1/responses', key: 'bob' })
    expect(responsesIn(third.text).map(repeatedIn)).toEqual([OF_BOB, OF_BOB])
    expect([first, second, whole].map(statusOf)).toEqual(['miss', 'hit', 'hit'])
    expect(second.text).not.toMatch(/ACME|key-of-ann/)
    expect(second.text).toContain(events[1])
    expect(responsesIn(second.text).map(repeatedIn)).toEqual([OF_BOB, OF_BOB])
    expect(repeatedIn(whole.json())).toEqual(OF_BOB)
  })
})

describe('what a hit costs', () => {
  interface Row {
    readonly quota: number
    readonly hit_saved: number
  }
  const rowOf = async ({ headers }: FullResponse): Promise<Row> => {
    const path = `GET /api/log/${String(headers['x-request-id'])}` as const
    const row = async (): Promise<Row | undefined> =>
      (await manage<Row | undefined>(fixture.gateway.url, ADMIN, path)).data
    // A call that got the answer as it arrived is charged after the answer was sent.
    await expect.poll(row).toBeDefined()
    return (await row()) as Row
  }

  test('a cached answer costs the configured share of the original charge, rounded to whole quota units', async () => {
    const body = { model: 'priced', messages: [ROOT_MESSAGE] }
    fixture.upstream.script('priced', {
      kind: 'whole',
      usage: '{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13}',
    })
    const [first, second] = [
      await ask('/v1/chat/completions', body),
      await ask('/v1/chat/completions', body, 'bob'),
    ]
    // 10 at 1 and 3 at 4; a quarter is 5.5, rounded away from zero.
    expect((await rowOf(first)).quota).toBe(22)
    expect(await rowOf(second)).toMatchObject({ quota: 6, hit_saved: 16 })
    const refused = await ask('/v1/chat/completions', body, 'poor')
    expect([refused.status, refused.json().error.code]).toEqual([403, 'insufficient_quota'])
  })

  test('a call that waits for the answer of an equal call is charged like a cache hit, once the answer is complete', async () => {
    const body = { model: 'priced', messages: [{ role: 'user', content: 'under way' }], stream: true }
    const release = Promise.withResolvers<void>()
    fixture.upstream.script('priced', {
      kind: 'stream',
      events: 2,
      usage: '{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13}',
      endsAfter: release.promise,
    })
    const calls = ['ann', 'bob', 'bob'].map((key) => ask('/v1/chat/completions', body, key))
    await fixture.upstream.receivedAtLeast('priced', 1)
    await new Promise((resolve) => setTimeout(resolve, 200))
    release.resolve()
    const answers = await Promise.all(calls)
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    const rows = await Promise.all(answers.map(rowOf))
    expect(rows.map(({ quota }) => quota).toSorted((a, b) => a - b)).toEqual([6, 6, 22])
    expect(asked('priced')).toBe(1)
  })
})

test('with the cache scope group, the users of a group share cached answers, and users of other groups do not', async () => {
  const body = { model: 'chat', messages: [{ role: 'user', content: 'by group' }] }
  const answers = [
    await ask('/v1/chat/completions', body),
    await ask('/v1/chat/completions', body, 'bob'),
    await ask('/v1/chat/completions', body, 'vip'),
  ]
  expect(answers.map(statusOf)).toEqual(['miss', 'hit', 'miss'])
})

test('the answer of a fallback model is not cached', async () => {
  fixture.upstream.script('first', { kind: 'status', status: 503 })
  const body = { model: 'first', messages: [ROOT_MESSAGE] }
  const answers = [await ask('/v1/chat/completions', body), await ask('/v1/chat/completions', body)]
  expect(
    answers.map(({ status, headers }) => [status, headers['x-gateway-model'], headers['x-gateway-cache']]),
  ).toEqual([
    [200, 'second', 'miss'],
    [200, 'second', 'miss'],
  ])
})

test('a call that repeats its idempotency key is replayed rather than answered from the cache', async () => {
  const body = { model: 'chat', messages: [{ role: 'user', content: 'once' }] }
  const more = { headers: { 'idempotency-key': 'once' } }
  const [first, second] = [
    await ask('/v1/chat/completions', body, 'ann', more),
    await ask('/v1/chat/completions', body, 'ann', more),
  ]
  expect(second.headers['idempotency-replayed']).toBe('true')
  expect(second.text).toBe(first.text)
  expect(statusOf(await ask('/v1/chat/completions', body))).toBe('hit')
})

test.each([
  [
    '/v1/images/generations',
    { model: 'chat', prompt: 'a cat' },
    { created: 1, data: [{ b64_json: 'QUJD' }] },
  ],
  ['/v1/messages/count_tokens', { model: 'messages', messages: [ROOT_MESSAGE] }, { input_tokens: 3 }],
  ['/v1/responses/input_tokens', { model: 'stored', input: 'hi' }, { input_tokens: 3 }],
  ['/v1/responses/compact', { model: 'stored', input: 'hi' }, { id: 'x', output: [] }],
] as const)(
  'an answer of %s passes the cache by, and the description states the header that says so',
  async (path, body, answer) => {
    fixture.upstream.script(body.model, { kind: 'whole', body: JSON.stringify(answer) })
    const document = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/openapi.json' })
    const { headers } = JSON.parse(document.text).paths[path].post.responses['200']
    const { status, text, headers: came } = await ask(path, body)
    expect([status, came['x-gateway-cache']], text).toEqual([200, 'bypass'])
    expect(headers['x-gateway-cache'].schema).toEqual({ const: 'bypass' })
  },
)
