import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contentFrame } from '../fixtures/behaviour.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { type FullResponse, type CallOptions, call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import {
  eventFrame,
  messageFrames,
  messagesErrorText,
  streamedMessage,
  wholeMessage,
} from '../fixtures/messages-behaviour.ts'
import { rawConnection } from '../fixtures/raw-socket.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

const ANSWER_TEXT = [{ text: 'Hello.' }]
const USER = [{ role: 'user' as const, content: 'hi' }]

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, body_limit: '4KiB' },
    models: {
      ...priced(['claude', 'gpt']),
      rare: { ...(priced(['m'])['m'] as object), rate_limit: { requests: 1, window: '1h' } },
    },
    channels: [
      channel('claude', upstream.baseUrl('claude'), { protocol: 'messages', models: ['claude', 'rare'] }),
      channel('gpt', upstream.baseUrl('gpt')),
      channel('priceless', upstream.baseUrl('priceless')),
    ],
    users: [
      ROOT,
      user(2, 'ann', [
        token('ann'),
        token('off', { status: 2 }),
        token('poor', { remain_quota: 1 }),
        // Enough for what a call holds at first, and not for more.
        ...['claude', 'gpt'].map((model) => token(`short${model}`, { remain_quota: 1000 })),
        ...['claude', 'gpt'].map((model) =>
          token(`capped${model}`, { budget: 1000, budget_period: 'month' }),
        ),
      ]),
    ],
  }))
})
afterAll(() => fixture?.close())

const say = (fields: object = {}, options: CallOptions = {}): Promise<FullResponse> =>
  call(
    fixture.gateway.url,
    { model: 'claude', max_tokens: 5, messages: USER, ...fields },
    { path: '/v1/messages', key: 'ann', ...options },
  )

function expectId({ headers }: FullResponse): string {
  expect(headers['x-request-id']).toMatch(/^[\w-]{36}$/)
  expect(headers['request-id']).toBe(headers['x-request-id'])
  return String(headers['request-id'])
}

describe('the header request-id', () => {
  test('whole responses to messages clients have the header request-id, native and converted', async () => {
    fixture.upstream.script('claude', wholeMessage(ANSWER_TEXT))
    const native = await say()
    expect(native.status).toBe(200)
    expectId(native)
    fixture.upstream.script('gpt', wholeChat({ text: 'Hello.' }))
    const converted = await say({ model: 'gpt' })
    expect(converted.status).toBe(200)
    expectId(converted)
  })
  test('streams to messages clients have the header request-id', async () => {
    fixture.upstream.script('claude', streamedMessage(ANSWER_TEXT))
    const answer = await say({ stream: true })
    expect(answer.text).toContain('event: message_stop')
    expectId(answer)
  })
  test('token counts for messages clients have the header request-id, whether the upstream or the gateway counts', async () => {
    fixture.upstream.script('claude', { kind: 'whole', body: '{"input_tokens":3}' })
    const path = '/v1/messages/count_tokens'
    const asked = await say({ max_tokens: undefined }, { path })
    expect(asked.json()).toEqual({ input_tokens: 3 })
    expectId(asked)
    const counted = await say({ model: 'gpt', max_tokens: undefined }, { path })
    expect(counted.status).toBe(200)
    expectId(counted)
  })
  test.each(['/v1/models', '/v1/models/claude', '/v1/models/no-such-model'])(
    'model lists in the messages format have the header request-id: %s',
    async (path) => {
      const headers = { 'anthropic-version': '2023-06-01' }
      expectId(await call(fixture.gateway.url, undefined, { method: 'GET', path, key: 'ann', headers }))
    },
  )
  test('responses at paths other than those of the messages protocol have no header request-id', async () => {
    fixture.upstream.script('gpt', wholeChat({ text: 'Hello.' }))
    const chat = await fixture.chat('ann', { model: 'gpt', messages: USER })
    expect(chat.status).toBe(200)
    expect(chat.headers).not.toHaveProperty('request-id')
    const list = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/v1/models', key: 'ann' })
    expect(list.headers).not.toHaveProperty('request-id')
  })
})

describe('an error of the gateway itself', () => {
  const large = { messages: [{ role: 'user', content: 'x'.repeat(5000) }] }
  test.each<[string, number, () => Promise<FullResponse>, string?]>([
    ['a field that is wrong', 400, () => say({ temperature: 'hot' })],
    ['no JSON', 400, () => call(fixture.gateway.url, '{', { path: '/v1/messages', key: 'ann' })],
    ['no price', 400, () => say({ model: 'priceless' }), 'model_price_error'],
    ['an unknown key', 401, () => say({}, { key: 'nobody' })],
    ['a disabled key', 401, () => say({}, { key: 'off' })],
    ['too little quota', 403, () => say({}, { key: 'poor' }), 'insufficient_quota'],
    ['a path that is not there', 404, () => say({}, { path: '/v1/messages/agents' })],
    ['a method that is not taken', 405, () => say({}, { method: 'PUT' })],
    [
      'a method that counting does not take',
      405,
      () => say({}, { method: 'PUT', path: '/v1/messages/count_tokens' }),
    ],
    ['a body over the limit', 413, () => say(large), 'read_request_body_failed'],
    ['a body that is not JSON', 415, () => say({}, { headers: { 'content-type': 'text/plain' } })],
    ['a model that no channel serves', 503, () => say({ model: 'unheard-of' }), 'model_not_found'],
  ])(
    'a gateway error for messages clients has the outer type error and the id of the request: %s',
    async (_, status, asking, code) => {
      const answer = await asking()
      const id = expectId(answer)
      expect(answer.status, answer.text).toBe(status)
      expect(answer.json()).toEqual({
        type: 'error',
        error: {
          type: 'gateway_error',
          message: expect.stringMatching(new RegExp(`.\\(request id: ${id}\\)$`)),
          code: code ?? (expect.any(String) as unknown),
          ...(code === 'insufficient_quota' && {
            spent: 0,
            held: 0,
            left: 1,
            needed: expect.any(Number) as unknown,
          }),
        },
        request_id: id,
      })
    },
  )

  test('a rate limit error for messages clients has the outer type error and the id of the request', async () => {
    fixture.upstream.script('claude', wholeMessage(ANSWER_TEXT))
    expect((await say({ model: 'rare' })).status).toBe(200)
    const answer = await say({ model: 'rare' })
    expect(answer.status).toBe(429)
    const id = expectId(answer)
    expect(answer.json()).toMatchObject({ type: 'error', error: { type: 'gateway_error' }, request_id: id })
  })

  test('an error for an unreadable messages request has the outer type error and the id of the request', async () => {
    const head = 'POST /v1/messages HTTP/1.1\r\nhost: a\r\nauthorization: Bearer sk-ann\r\n'
    const text = await rawConnection(
      fixture.gateway.port,
      `${head}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n`,
    ).closed()
    expect(text).toMatch(/^HTTP\/1\.1 400 /)
    const [, id] = /\r\nrequest-id: (\S+)\r\n/.exec(text) ?? []
    expect(text).toContain(`\r\nx-request-id: ${id}\r\n`)
    expect(JSON.parse(text.slice(text.indexOf('{')))).toMatchObject({
      type: 'error',
      error: { type: 'gateway_error' },
      request_id: id,
    })
  })

  test("an upstream's messages error keeps its body unchanged, and gets the gateway's header request-id", async () => {
    const body = messagesErrorText('overloaded_error', 'busy')
    fixture.upstream.script('claude', { kind: 'status', status: 529, body })
    const answer = await say()
    expect(answer.status).toBe(529)
    expect(answer.text).toBe(body)
    expectId(answer)
  })
})

describe('an error of the gateway itself in a stream', () => {
  const WORD = ' banana'
  const WORDS = 500
  /** Streams of many more tokens than the call allows, in the dialects of the channels. */
  const ENDLESS = {
    claude: [
      ...messageFrames([{ text: WORD }]).slice(0, 3),
      ...Array.from({ length: WORDS }, () =>
        eventFrame('content_block_delta', { index: 0, delta: { type: 'text_delta', text: WORD } }),
      ),
    ],
    gpt: Array.from({ length: WORDS }, () => contentFrame(WORD)),
  }

  test.each(
    (['claude', 'gpt'] as const).flatMap(
      (model) =>
        [
          [model, 'ann', 'upstream_error', 4],
          [model, `short${model}`, 'insufficient_quota', WORDS],
          [model, `capped${model}`, 'budget_exceeded', WORDS],
        ] as const,
    ),
  )(
    'an error event from a channel of %s to the key %s has the type gateway_error and the code %s',
    async (model, key, code, count) => {
      fixture.upstream.script(model, {
        kind: 'stream',
        ending: 'close',
        frames: ENDLESS[model].slice(0, count),
      })
      const answer = await say({ model, stream: true, max_tokens: 50 }, { key })
      expect(answer.status, answer.text).toBe(200)
      const last = answer.text.trim().split('\n\n').at(-1) ?? ''
      expect(last).toMatch(/^event: error\n/)
      expect(JSON.parse(last.slice(last.indexOf('{')))).toEqual({
        type: 'error',
        error: {
          type: 'gateway_error',
          code,
          message: expect.stringMatching(
            new RegExp(` \\(request id: ${String(answer.headers['request-id'])}\\)$`),
          ),
        },
        request_id: answer.headers['request-id'],
      })
    },
  )
})

test.each(['apiKey', 'authToken'] as const)(
  'the official Anthropic client, with %s, knows the id of a failed and of a successful request',
  async (credential) => {
    const client = new Anthropic({ [credential]: 'sk-ann', baseURL: fixture.gateway.url, maxRetries: 0 })
    const create = (model: string) => client.messages.create({ model, max_tokens: 5, messages: USER })
    const error = await create('unheard-of').catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(Anthropic.InternalServerError)
    const { requestID, message } = error as InstanceType<typeof Anthropic.InternalServerError>
    expect(message).toContain(`(request id: ${requestID})`)
    fixture.upstream.script('claude', wholeMessage(ANSWER_TEXT))
    expect(await create('claude')).toHaveProperty('_request_id', expect.stringMatching(/^[\w-]{36}$/))
  },
)
