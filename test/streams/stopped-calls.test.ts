import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { contentFrame, completionText, roleFrame } from '../fixtures/behaviour.ts'
import { call, type FullResponse, open } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type UsageRow } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { geminiFrames } from '../fixtures/gemini-behaviour.ts'
import { messageFrames } from '../fixtures/messages-behaviour.ts'
import { frames as responseFrames } from '../fixtures/responses-behaviour.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
/** 2,000 tokens in any tokenizer. */
const WORDS = 'apple '.repeat(2_000)

type Dialect = 'chat' | 'messages' | 'responses' | 'gemini'
const DIALECTS: readonly Dialect[] = ['chat', 'messages', 'responses', 'gemini']
const MODELS = [...DIALECTS, 'vectors', 'converted-vectors', 'ranks', 'pictures']

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
    models: Object.fromEntries(MODELS.map((name) => [name, { price: PLAIN_PRICE }])),
    channels: [
      ...DIALECTS.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
      channel('vectors', upstream.baseUrl('vectors')),
      channel('converted-vectors', upstream.baseUrl('converted-vectors'), { protocol: 'gemini' }),
      channel('ranks', upstream.baseUrl('ranks'), { protocol: 'rerank' }),
      channel('pictures', upstream.baseUrl('pictures')),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')], { access_token: ANN.accessToken })],
  }))
})
afterAll(() => fixture?.close())

interface Asked {
  readonly path: string
  readonly body: Record<string, unknown>
}

function asked(client: Dialect, model: string, stream: boolean): Asked {
  const messages = [{ role: 'user', content: WORDS }]
  switch (client) {
    case 'chat':
      return { path: '/v1/chat/completions', body: { model, messages, stream } }
    case 'messages':
      return { path: '/v1/messages', body: { model, messages, max_tokens: 50, stream } }
    case 'responses':
      return { path: '/v1/responses', body: { model, input: WORDS, stream } }
    case 'gemini':
      return {
        path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
        body: { contents: [{ role: 'user', parts: [{ text: WORDS }] }] },
      }
  }
}

/** Stops the only running call, and returns its row. */
async function stopAndRead(): Promise<UsageRow> {
  const { data } = await manage<{ items: { id: string }[] }>(
    fixture.gateway.url,
    ANN,
    'GET /api/running/self',
  )
  expect(data.items).toHaveLength(1)
  const id = data.items[0]?.id ?? ''
  const { status } = await manage(fixture.gateway.url, ANN, `POST /api/running/${id}/stop`)
  expect(status).toBe(200)
  const database = databaseOf(fixture.gateway.dataDir)
  await vi.waitFor(() => expect(database.usageOf(id)?.reason).toBe('stopped'), 60_000)
  return database.usageOf(id) as UsageRow
}

/** Stops a call of which the upstream has received the request, and answered nothing. */
async function stopUnanswered(lane: string, { path, body }: Asked) {
  fixture.upstream.script(lane, { kind: 'silence' })
  const before = fixture.upstream.received(lane).length
  const answer = call(fixture.gateway.url, body, { key: 'ann', path })
  await fixture.upstream.receivedAtLeast(lane, before + 1)
  return { row: await stopAndRead(), answer: await answer }
}

function expectStopped({ status, text }: FullResponse): void {
  expect(status).toBe(503)
  expect(text).toContain('this call was stopped')
}

const ROADS = DIALECTS.flatMap((client) =>
  DIALECTS.flatMap((upstream) => [false, true].map((stream) => [client, upstream, stream] as const)),
)

describe('a call that is stopped before the first word', () => {
  test.each(ROADS)('is charged for its prompt: %s to %s, streamed: %s', async (client, upstream, stream) => {
    const { row, answer } = await stopUnanswered(upstream, asked(client, upstream, stream))
    expectStopped(answer)
    expect(row.input_tokens).toBeGreaterThanOrEqual(2_000)
    expect(row.output_tokens).toBe(0)
    // 2 USD for a million tokens are 1 quota unit for each.
    expect(row.quota).toBe(row.input_tokens)
  })

  test.each<[string, string, Asked]>([
    [
      'a response in the background',
      'responses',
      { path: '/v1/responses', body: { model: 'responses', input: WORDS, background: true } },
    ],
    [
      'a streamed response in the background',
      'responses',
      { path: '/v1/responses', body: { model: 'responses', input: WORDS, background: true, stream: true } },
    ],
    ['a legacy completion', 'chat', { path: '/v1/completions', body: { model: 'chat', prompt: WORDS } }],
    ['embeddings', 'vectors', { path: '/v1/embeddings', body: { model: 'vectors', input: WORDS } }],
    [
      'converted embeddings',
      'converted-vectors',
      { path: '/v1/embeddings', body: { model: 'converted-vectors', input: WORDS } },
    ],
    ['a ranking', 'ranks', { path: '/v1/rerank', body: { model: 'ranks', query: WORDS, documents: ['x'] } }],
    ['an image', 'pictures', { path: '/v1/images/generations', body: { model: 'pictures', prompt: WORDS } }],
  ])('is charged for its prompt: %s', async (_, lane, request) => {
    const { row, answer } = await stopUnanswered(lane, request)
    expectStopped(answer)
    expect(row.input_tokens).toBeGreaterThanOrEqual(2_000)
    expect(row.quota).toBeGreaterThanOrEqual(row.input_tokens)
  })
})

test('a whole answer that is stopped before its end is charged for the prompt and what had arrived', async () => {
  const bytes = completionText(WORDS, null).slice(0, 9_000)
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n'
  fixture.upstream.script('chat', { kind: 'raw', bytes: head + bytes, ending: 'stall' })
  const before = fixture.upstream.received('chat').length
  const { path, body } = asked('chat', 'chat', false)
  const answer = call(fixture.gateway.url, body, { key: 'ann', path })
  await fixture.upstream.receivedAtLeast('chat', before + 1)
  await vi.waitFor(async () => {
    const { data } = await manage<{ items: { state: string }[] }>(
      fixture.gateway.url,
      ANN,
      'GET /api/running/self',
    )
    expect(data.items[0]?.state).toBe('answering')
  }, 60_000)
  const row = await stopAndRead()
  expectStopped(await answer)
  expect(row.input_tokens).toBeGreaterThanOrEqual(2_000)
  // The answer's part is 1,450 times `apple ` or more, each a token.
  expect(row.output_tokens).toBeGreaterThanOrEqual(1_400)
  expect(row.quota).toBe(row.input_tokens + 4 * row.output_tokens)
})

test('embeddings by several requests that are stopped are charged for all requests that were sent', async () => {
  const lane = 'converted-vectors'
  const embeddings = Array.from({ length: 100 }, () => ({ values: [0.5] }))
  fixture.upstream.script(lane, { kind: 'whole', body: JSON.stringify({ embeddings }) }, { kind: 'silence' })
  const before = fixture.upstream.received(lane).length
  const input = Array.from({ length: 150 }, () => 'apple '.repeat(20))
  const answer = call(fixture.gateway.url, { model: lane, input }, { key: 'ann', path: '/v1/embeddings' })
  await fixture.upstream.receivedAtLeast(lane, before + 2)
  const row = await stopAndRead()
  expectStopped(await answer)
  expect(row.input_tokens).toBeGreaterThanOrEqual(150 * 20)
  expect(row.quota).toBe(row.input_tokens)
})

test.each<[Dialect, readonly string[]]>([
  ['chat', [roleFrame(), contentFrame(`upon ${WORDS}`)]],
  [
    'messages',
    messageFrames([{ text: `upon ${WORDS}` }], { counts: { input_tokens: 0, output_tokens: 0 } }).slice(0, 5),
  ],
  ['responses', responseFrames({ text: `upon ${WORDS}` }).slice(0, 6)],
  ['gemini', geminiFrames({ text: `upon ${WORDS}`, usage: '{}' }).slice(0, 2)],
])(
  'a %s stream that is stopped after its first words is charged for the prompt and what had arrived',
  async (dialect, frames) => {
    fixture.upstream.script(dialect, { kind: 'stream', frames, ending: 'stall' })
    const { path, body } = asked(dialect, dialect, true)
    const live = await open(fixture.gateway.url, body, { key: 'ann', path })
    await live.until('apple')
    const row = await stopAndRead()
    expect((await live.end()).text).toContain('this call was stopped')
    expect(row.input_tokens).toBeGreaterThanOrEqual(2_000)
    expect(row.output_tokens).toBeGreaterThanOrEqual(2_000)
    expect(row.quota).toBe(row.input_tokens + 4 * row.output_tokens)
  },
)
