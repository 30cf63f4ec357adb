import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { streamedChat, wholeChat } from '../fixtures/chat-behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { logIn } from '../fixtures/console.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

const ACCOUNTS = {
  ann: { id: 2, accessToken: 'the-access-token-of-ann' },
  ada: { id: 3, accessToken: 'the-access-token-of-ada' },
  root: { id: 1, accessToken: ROOT.access_token },
} as const
type Person = keyof typeof ACCOUNTS

const CONTENTS = [{ role: 'user', parts: [{ text: 'hi' }] }]
const MESSAGES = [{ role: 'user', content: 'hi' }]
const CALLS = [
  ['/v1/chat/completions', '/api/playground/chat/completions', { model: 'm', messages: MESSAGES }],
  ['/v1/messages', '/api/playground/messages', { model: 'm', max_tokens: 9, messages: MESSAGES }],
  ['/v1/responses', '/api/playground/responses', { model: 'm', input: 'hi' }],
  ['/v1beta/models/m:generateContent', '/api/playground/models/m:generateContent', { contents: CONTENTS }],
] as const

/** Calls without a conversation, with what their upstream responds. */
const OTHERS = [
  [
    '/v1/embeddings',
    '/api/playground/embeddings',
    { model: 'vectors', input: 'hi' },
    '{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":9,"total_tokens":9}}',
    'application/json',
  ],
  [
    '/v1/images/generations',
    '/api/playground/images/generations',
    { model: 'pictures', prompt: 'a cat' },
    '{"created":1,"data":[{"b64_json":"aGk="}]}',
    'application/json',
  ],
  [
    '/v1/audio/speech',
    '/api/playground/audio/speech',
    { model: 'voices', input: 'hello', voice: 'alloy' },
    'sound',
    'audio/mpeg',
  ],
] as const

let fixture: Fixture
const cookies = new Map<Person, string>()
/** Ids of keys by name. */
const keys = new Map<string, number>()
beforeAll(async () => {
  const limited = { rate_limit: { requests: 1, window: '1h' } }
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 9, window: '1h' }, critical: { requests: 0 } },
    models: {
      ...priced(['m', 'other', 'vectors']),
      pictures: { price: { image: 0.02 } },
      voices: { price: { characters: 20 } },
    },
    channels: [
      channel('m', upstream.baseUrl('m'), { models: ['m', 'other'] }),
      ...['vectors', 'pictures', 'voices'].map((name) => channel(name, upstream.baseUrl(name))),
    ],
    users: [
      { ...ROOT, tokens: [token('ofroot')] },
      user(
        2,
        'ann',
        [
          token('ann'),
          token('disabled', { status: 2 }),
          token('drained', { remain_quota: 0 }),
          token('elsewhere', { allow_ips: '192.0.2.1' }),
          token('narrow', { model_limits_enabled: true, model_limits: 'other' }),
          token('slow', limited),
        ],
        { access_token: ACCOUNTS.ann.accessToken },
      ),
      user(3, 'ada', [token('ada')], { access_token: ACCOUNTS.ada.accessToken, role: 10 }),
    ],
  }))
  fixture.upstream.script('m', wholeChat({ text: 'Hello.' }))
  for (const person of Object.keys(ACCOUNTS) as Person[]) {
    const { accessToken } = ACCOUNTS[person]
    cookies.set(person, (await logIn(fixture.gateway.url, { access_token: accessToken })).cookie)
  }
  for (const { id, name } of databaseOf(fixture.gateway.dataDir).tokens())
    keys.set(name.replace('token-', ''), id)
})
afterAll(() => fixture?.close())

interface Played {
  readonly by?: Person
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A request by a session that names a key. */
function play(
  path: string,
  body: object | undefined,
  { by = 'ann', key = 'ann', headers = {} }: Played = {},
) {
  return call(fixture.gateway.url, body, {
    method: body ? 'POST' : 'GET',
    path,
    headers: { cookie: cookies.get(by) ?? '', 'gateway-key': String(keys.get(key) ?? key), ...headers },
  })
}

const chat = (played?: Played): Promise<FullResponse> => play(CALLS[0][1], CALLS[0][2], played)

const rowOf = ({ headers }: FullResponse) =>
  databaseOf(fixture.gateway.dataDir).usageOf(String(headers['x-request-id']))

describe('the playground', () => {
  test.each(CALLS)(
    'a call of %s in the playground is sent and charged like a call with the API key itself',
    async (path, played, body) => {
      const withKey = await call(fixture.gateway.url, body, { path, key: 'ann' })
      const without = await play(played, body)
      expect([withKey.status, without.status]).toEqual([200, 200])
      const [one, other] = fixture.upstream.received('m').slice(-2)
      expect(other?.text).toBe(one?.text)
      expect(Object.keys(other?.headers ?? {})).toEqual(Object.keys(one?.headers ?? {}))
      expect(other?.headers).not.toMatchObject({ cookie: expect.anything() })
      const [charged, row] = [rowOf(withKey), rowOf(without)]
      expect(charged?.quota).toBeGreaterThan(0)
      expect(row).toMatchObject({ token_id: keys.get('ann'), user_id: 2, quota: charged?.quota })
    },
  )

  test.each(OTHERS)(
    'a call of %s in the playground is sent and charged like a call with the API key itself',
    async (path, played, body, reply, type) => {
      const headers = { 'content-type': type }
      fixture.upstream.script(body.model, { kind: 'whole', body: Buffer.from(reply), headers })
      const withKey = await call(fixture.gateway.url, body, { path, key: 'ann' })
      const without = await play(played, body)
      expect([withKey.status, without.status]).toEqual([200, 200])
      expect(without.text).toBe(withKey.text)
      expect(rowOf(without)?.quota).toBe(rowOf(withKey)?.quota)
      expect(rowOf(without)?.quota).toBeGreaterThan(0)
      expect((await play(played, body, { key: 'ada' })).status).toBe(404)
    },
  )

  test('the playground streams an answer that is requested with stream: true', async () => {
    fixture.upstream.script('m', streamedChat({ text: 'Hello.' }))
    const { status, headers, text } = await play(CALLS[0][1], { ...CALLS[0][2], stream: true })
    fixture.upstream.script('m', wholeChat({ text: 'Hello.' }))
    expect([status, headers['content-type']]).toEqual([200, expect.stringContaining('text/event-stream')])
    expect(text).toContain('data: [DONE]')
  })

  test('the playground lists the models that the chosen API key may use', async () => {
    const list = await play('/api/playground/models', undefined, { key: 'narrow' })
    const withKey = await call(fixture.gateway.url, undefined, {
      method: 'GET',
      path: '/v1/models',
      key: 'narrow',
    })
    expect(list.status).toBe(200)
    expect(list.text).toBe(withKey.text)
    expect(JSON.parse(list.text).data.map(({ id }: { id: string }) => id)).toEqual(['other'])
  })

  test("the playground accepts an access token with its user's id instead of a session", async () => {
    const headers = { authorization: ACCOUNTS.ann.accessToken, cookie: '' }
    expect((await chat({ headers: { ...headers, 'gateway-user': '2' } })).status).toBe(200)
    expect((await chat({ headers })).status).toBe(401)
  })

  test.each(['ann', 'ada', 'root'] as const)(
    'the playground lets the user %s use no API keys but their own',
    async (by) => {
      for (const owner of ['ann', 'ada', 'root'] as const) {
        const key = owner === 'root' ? 'ofroot' : owner
        const expected = owner === by ? 200 : 404
        expect((await chat({ by, key })).status).toBe(expected)
        expect((await play('/api/playground/models', undefined, { by, key })).status).toBe(expected)
      }
    },
  )

  test.each([
    ['no key', { headers: { 'gateway-key': '' } }, 400],
    ['what is no id', { key: 'sk-ann' }, 400],
    ['an id that no key has', { key: '999999' }, 404],
    ['a disabled key', { key: 'disabled' }, 401],
    ['an exhausted key', { key: 'drained' }, 401],
    ['a key for other addresses', { key: 'elsewhere' }, 403],
    ['a key for other models', { key: 'narrow' }, 403],
    ['no session', { headers: { cookie: '' } }, 401],
    ['a session by a page of another site', { headers: { 'sec-fetch-site': 'cross-site' } }, 403],
    ['an API key in place of a session', { headers: { authorization: 'Bearer sk-ann' } }, 401],
  ] as const)(
    'the playground refuses a call without a usable key or session: %s',
    async (_, played, status) => {
      const refused = await chat(played)
      expect(refused.status).toBe(status)
      expect(JSON.parse(refused.text)).toHaveProperty('error.message')
    },
  )

  test('the playground applies the rate limit of the chosen API key', async () => {
    const statuses = [(await chat({ key: 'slow' })).status, (await chat({ key: 'slow' })).status]
    expect(statuses).toEqual([200, 429])
  })

  test('the playground returns errors in the dialect of the called API', async () => {
    const refused = await play(CALLS[1][1], CALLS[1][2], { key: '999999' })
    expect(JSON.parse(refused.text)).toMatchObject({ type: 'error', error: { type: 'gateway_error' } })
    const [, path, body] = CALLS[3]
    expect(JSON.parse((await play(path, body, { key: '999999' })).text)).toMatchObject({
      error: { code: 404, status: 'NOT_FOUND' },
    })
  })
})
