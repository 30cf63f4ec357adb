import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { errorBody } from '../fixtures/behaviour.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { startFixture, type Fixture } from '../fixtures/fixture.ts'

const ADMIN = { id: 4, accessToken: 'the-access-token-of-an-admin' }
const LANES = ['chat', 'messages', 'rerank', 'declared'] as const

interface Result {
  readonly success: boolean
  readonly message: string
  readonly time: number
}

let fixture: Fixture
const ids = new Map<string, number>()
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: {},
    channels: [
      channel('declared', upstream.baseUrl('declared'), { models: ['d'], model_mapping: { d: 'dd' } }),
    ],
    users: [ROOT, user(4, 'ada', [token('ada')], { access_token: ADMIN.accessToken, role: 10 })],
  }))
  const base = (name: string): string => fixture.upstream.baseUrl(name).replace(/\/v1$/, '')
  const types = { chat: 1, messages: 14, rerank: 34 }
  for (const [name, type] of Object.entries(types)) {
    const { data } = await as<{ ids: number[] }>('POST /api/channel/', {
      name,
      type,
      key: `sk-secret-of-${name}`,
      base_url: base(name),
      models: 'm1,m2',
      status: name === 'messages' ? 2 : 1,
    })
    ids.set(name, data.ids[0] ?? 0)
  }
  const { data } = await as<{ items: { id: number; name: string }[] }>('GET /api/channel/')
  ids.set('declared', data.items.find(({ name }) => name === 'declared')?.id ?? 0)
})
afterAll(() => fixture.close())
beforeEach(() => {
  for (const lane of LANES) fixture.upstream.script(lane, { kind: 'whole' })
})

const as = <Data>(request: Parameters<typeof manage>[2], body?: object) =>
  manage<Data>(fixture.gateway.url, ADMIN, request, body)

const tested = async (name: string, query = '', account = ADMIN): Promise<Result> =>
  (await manage(fixture.gateway.url, account, `GET /api/channel/test/${ids.get(name)}${query}`))
    .body as unknown as Result

const testedByRoot = (name: string): Promise<Result> =>
  tested(name, '', { id: 1, accessToken: ROOT.access_token })

describe('GET /api/channel/test/:id', () => {
  test('a channel test requests one token of a chat upstream, with the key of the channel', async () => {
    expect(await tested('chat')).toEqual({
      success: true,
      message: '',
      time: expect.any(Number),
      model: 'm1',
      endpoint: 'chat',
      costs: false,
      needs_repair: false,
    })
    const { path, headers, text } = fixture.upstream.only('chat')
    expect(path).toBe('/v1/chat/completions')
    expect(headers.authorization).toBe('Bearer sk-secret-of-chat')
    expect(JSON.parse(text)).toMatchObject({ model: 'm1', max_tokens: 1 })
  })

  test.each(['o4-mini', 'gpt-5', 'gpt-6-sol'])(
    'a channel test of %s uses max_completion_tokens: 1',
    async (model) => {
      fixture.upstream.forget('chat')
      expect(await tested('chat', `?model=${model}`)).toMatchObject({ success: true })
      const body = JSON.parse(fixture.upstream.only('chat').text)
      expect(body).toMatchObject({ model, max_completion_tokens: 1 })
      expect(body).not.toHaveProperty('max_tokens')
    },
  )

  test('a channel test calls a messages upstream in its own dialect, even if the channel is disabled', async () => {
    expect((await tested('messages')).success).toBe(true)
    const { path, headers, text } = fixture.upstream.only('messages')
    expect(path).toBe('/v1/messages')
    expect(headers).toMatchObject({ 'x-api-key': 'sk-secret-of-messages', 'anthropic-version': '2023-06-01' })
    expect(JSON.parse(text)).toMatchObject({ model: 'm1', max_tokens: 1 })
  })

  test('a channel test sends a rerank upstream one document', async () => {
    expect((await tested('rerank')).success).toBe(true)
    const { path, text } = fixture.upstream.only('rerank')
    expect(path).toBe('/v1/rerank')
    expect(JSON.parse(text)).toMatchObject({ model: 'm1', documents: ['hi'] })
  })

  test('a channel test calls the model that the request names, under the name that the upstream uses', async () => {
    await tested('chat', '?model=m2')
    expect(JSON.parse(fixture.upstream.only('chat').text).model).toBe('m2')
    await tested('declared')
    expect(JSON.parse(fixture.upstream.only('declared').text).model).toBe('dd')
  })

  test('a channel test records its time and its duration', async () => {
    fixture.upstream.decide('chat', () => ({ kind: 'whole', after: sleep(120) }))
    const { time } = await tested('chat')
    const { data } = await as<Record<string, number>>(`GET /api/channel/${ids.get('chat')}`)
    expect(time).toBeGreaterThanOrEqual(0.1)
    expect(data['response_time']).toBe(Math.round(time * 1000))
    expect(Math.abs((data['test_time'] ?? 0) - Date.now() / 1000)).toBeLessThan(300)
  })

  test("a channel test shows root the upstream's refusal, without its key and its address", async () => {
    const { port } = fixture.upstream
    fixture.upstream.script('chat', {
      kind: 'status',
      status: 401,
      body: errorBody(`the key sk-secret-of-chat is wrong at http://127.0.0.1:${port}/`),
    })
    const { success, message } = await testedByRoot('chat')
    expect(success).toBe(false)
    expect(message).toContain('the upstream answered 401: the key [redacted] is wrong')
    expect(message).not.toContain(String(port))
  })

  test.each([
    ['no answer', { kind: 'drop' }, 'no answer: '],
    ['a page', { kind: 'whole', body: '<html>' }, 'the answer is not JSON'],
    ['an answer without an end', { kind: 'whole', body: ' '.repeat(200_000) }, 'the answer is not JSON'],
  ] as const)(
    'a channel test fails if the upstream sends %s, and shows root the reason',
    async (_, behaviour, message) => {
      fixture.upstream.script('chat', behaviour)
      const result = await testedByRoot('chat')
      expect(result.success).toBe(false)
      expect(result.message).toContain(message)
    },
  )

  test('a channel test charges nobody, and leaves no call open', async () => {
    const rows = databaseOf(fixture.gateway.dataDir)
    const before = rows.user('ada')
    await tested('chat')
    expect(rows.user('ada')).toEqual(before)
    expect(rows.usage()).toEqual([])
    expect(rows.openHolds()).toEqual([])
  })
})
