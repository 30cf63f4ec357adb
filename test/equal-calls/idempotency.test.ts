import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { type Behaviour, completionText, usageText } from '../fixtures/behaviour.ts'
import { type Body, call, CERTAINLY_GONE_MS, type FullResponse, open } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import {
  type EndedAnswer,
  sendsFrames,
  sendsJson,
  streamedAnswer,
  type Upstream,
  wholeAnswer,
} from '../fixtures/ended-answers.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, recordingParts, waveFile } from '../fixtures/form.ts'
import { streamedGemini, wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { answered, json } from '../fixtures/media-fixture.ts'
import { streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { jinaAnswer, scored } from '../fixtures/rerank-behaviour.ts'
import { streamedResponse, wholeResponse } from '../fixtures/responses-behaviour.ts'
import { storingUpstream } from '../fixtures/stored-responses.ts'

const PRICE = { ...PLAIN_PRICE, second: 0.002, image: { default: 0.1 }, request: 0.01 }
const LANES = ['chat', 'messages', 'responses', 'gemini', 'rerank', 'slow', 'second'] as const

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, idempotency: { most_answer: '64KiB' } },
    models: Object.fromEntries(LANES.map((name) => [name, { price: PRICE }])),
    channels: LANES.map((name) =>
      channel(name, upstream.baseUrl(name), {
        protocol: ['slow', 'second'].includes(name) ? 'chat' : name,
      }),
    ),
    users: [
      ROOT,
      user(
        2,
        'ann',
        [
          token('ann'),
          token('other'),
          token('limited'),
          token('changing'),
          token('narrow', { model_limits_enabled: true, model_limits: 'chat' }),
        ],
        {
          access_token: ANN.accessToken,
        },
      ),
      ADMIN_USER,
      user(4, 'poor', [token('poor', { remain_quota: 100_000 })]),
    ],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

interface Given {
  readonly key?: string
  readonly path?: string
  readonly with?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Makes a call with an idempotency key. */
function attempt(
  body: Body,
  idempotencyKey: string,
  { key = 'ann', path = '/v1/chat/completions', headers = {} }: Given = {},
): Promise<FullResponse> {
  return call(fixture.gateway.url, body, {
    key,
    path,
    headers: { ...headers, 'idempotency-key': idempotencyKey },
  })
}

const rows = (): number => database.usage().length
const codeOf = (answer: FullResponse): string => `${answer.status} ${String(answer.json().error.code)}`

const CHAT_FRAMES: Behaviour = { kind: 'stream', events: 5, usage: usageText(10, 5) }
const IMAGE = { model: 'chat', prompt: 'x' }
const SPEECH = { model: 'chat', input: 'hello', voice: 'alloy' }

const ENDPOINTS: readonly (readonly [string, string, Behaviour, string, object])[] = [
  ['a chat completion', 'chat', { kind: 'whole' }, '/v1/chat/completions', ask('chat')],
  ['a chat stream', 'chat', CHAT_FRAMES, '/v1/chat/completions', askStream('chat')],
  [
    'a completion',
    'chat',
    json({
      id: 'c',
      object: 'text_completion',
      choices: [{ text: 'x', index: 0, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    }),
    '/v1/completions',
    { model: 'chat', prompt: 'x' },
  ],
  [
    'a message',
    'messages',
    wholeMessage([{ text: 'Once upon' }]),
    '/v1/messages',
    { model: 'messages', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
  ],
  [
    'a messages stream',
    'messages',
    streamedMessage([{ text: 'Once upon' }]),
    '/v1/messages',
    { model: 'messages', max_tokens: 9, stream: true, messages: [{ role: 'user', content: 'hi' }] },
  ],
  [
    'a converted stream',
    'chat',
    CHAT_FRAMES,
    '/v1/messages',
    { model: 'chat', max_tokens: 9, stream: true, messages: [{ role: 'user', content: 'hi' }] },
  ],
  [
    'a response',
    'responses',
    wholeResponse({ text: 'Once upon' }),
    '/v1/responses',
    { model: 'responses', input: 'hi' },
  ],
  [
    'a responses stream',
    'responses',
    streamedResponse({ text: 'Once upon' }),
    '/v1/responses',
    { model: 'responses', input: 'hi', stream: true },
  ],
  [
    'a Gemini answer',
    'gemini',
    wholeGemini(),
    '/v1beta/models/gemini:generateContent',
    { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
  ],
  [
    'a Gemini stream',
    'gemini',
    streamedGemini(),
    '/v1beta/models/gemini:streamGenerateContent?alt=sse',
    { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
  ],
  [
    'an embedding',
    'chat',
    json({
      object: 'list',
      data: [{ object: 'embedding', index: 0, embedding: [0.1, 0.2] }],
      model: 'chat',
      usage: { prompt_tokens: 3, total_tokens: 3 },
    }),
    '/v1/embeddings',
    { model: 'chat', input: 'x' },
  ],
  [
    'a moderation',
    'chat',
    json({ id: 'm', model: 'chat', results: [{ flagged: false }] }),
    '/v1/moderations',
    { model: 'chat', input: 'x' },
  ],
  ['an image', 'chat', json({ created: 1, data: [{ b64_json: 'AAAA' }] }), '/v1/images/generations', IMAGE],
  [
    'speech',
    'chat',
    answered('audio/mpeg', Buffer.from([255, 251, 0, 128, 200])),
    '/v1/audio/speech',
    SPEECH,
  ],
  [
    'a ranking',
    'rerank',
    jinaAnswer(scored(0.5), 10),
    '/v1/rerank',
    { model: 'rerank', query: 'which?', documents: ['zero'] },
  ],
]

describe('a second attempt with the same idempotency key', () => {
  test.each(ENDPOINTS)(
    'a second call with the same idempotency key is replayed byte for byte, free of charge: %s',
    async (_, lane, behaviour, path, body) => {
      fixture.upstream.script(lane, behaviour)
      const [key, before] = [randomUUID(), rows()]
      const first = await attempt(body, key, { path })
      expect(first.status, first.text).toBe(200)
      expect(first.headers['idempotency-replayed']).toBeUndefined()
      await expect.poll(rows).toBe(before + 1)
      const second = await attempt(body, key, { path })
      expect(second.status, second.text).toBe(200)
      expect(second.bytes.equals(first.bytes)).toBe(true)
      expect(second.headers['idempotency-replayed']).toBe('true')
      for (const name of ['content-type', 'x-request-id', 'request-id', 'x-gateway-dropped'])
        expect(second.headers[name], name).toBe(first.headers[name])
      expect(fixture.upstream.received(lane)).toHaveLength(1)
      expect(rows()).toBe(before + 1)
    },
  )

  test('a token count is replayed for its idempotency key, whether the upstream or the gateway counted', async () => {
    const body = { model: 'messages', messages: [{ role: 'user', content: 'hi' }] }
    const path = '/v1/messages/count_tokens'
    for (const behaviour of [json({ input_tokens: 77 }), { kind: 'status', status: 404 } as const]) {
      fixture.upstream.script('messages', behaviour)
      const key = randomUUID()
      const first = await attempt(body, key, { path })
      const second = await attempt(body, key, { path })
      expect(first.status, first.text).toBe(200)
      expect(second.text).toBe(first.text)
      expect(second.headers['idempotency-replayed']).toBe('true')
      expect(fixture.upstream.received('messages')).toHaveLength(1)
    }
  })

  test('a multipart form that repeats an idempotency key is replayed whatever its boundary; another order of its parts is a conflict', async () => {
    const transcript = json({ text: 'hello', usage: { type: 'duration', seconds: 2 } })
    fixture.upstream.script('chat', transcript)
    const key = randomUUID()
    const parts = recordingParts('chat', waveFile(2), [{ name: 'language', content: 'de' }])
    const send = (list: typeof parts, boundary: string): Promise<FullResponse> =>
      attempt(
        Buffer.from(
          formBytes(list).toString('latin1').replaceAll('----test-boundary-7MA4YWxkTrZu0gW', boundary),
          'latin1',
        ),
        key,
        {
          path: '/v1/audio/transcriptions',
          headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
        },
      )
    const first = await send(parts, 'one')
    const second = await send(parts, 'another')
    expect(first.status, first.text).toBe(200)
    expect(second.text).toBe(first.text)
    expect(second.headers['idempotency-replayed']).toBe('true')
    expect(codeOf(await send(parts.toReversed(), 'one'))).toBe('422 idempotency_conflict')
    const large = recordingParts('chat', waveFile(60))
    const largeKey = { key: 'other' }
    const sendLarge = (boundary: string): Promise<FullResponse> =>
      attempt(
        Buffer.from(
          formBytes(large).toString('latin1').replaceAll('----test-boundary-7MA4YWxkTrZu0gW', boundary),
          'latin1',
        ),
        key,
        {
          ...largeKey,
          path: '/v1/audio/transcriptions',
          headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
        },
      )
    expect((await sendLarge('one')).status).toBe(200)
    expect((await sendLarge('two')).headers['idempotency-replayed']).toBe('true')
    expect(fixture.upstream.received('chat')).toHaveLength(2)
  })

  test('a call that repeats its idempotency key is replayed although its body has another content encoding', async () => {
    fixture.upstream.script('chat', { kind: 'whole' })
    const key = randomUUID()
    const text = JSON.stringify(ask('chat'))
    await attempt(text, key)
    const second = await attempt(gzipSync(text), key, {
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    })
    expect(second.headers['idempotency-replayed']).toBe('true')
  })

  test('an idempotency key belongs to its API key: with another API key of the user it makes a separate call', async () => {
    fixture.upstream.script('chat', { kind: 'whole' })
    const key = randomUUID()
    await attempt(ask('chat'), key)
    const other = await attempt(ask('chat'), key, { key: 'other' })
    expect(other.headers['idempotency-replayed']).toBeUndefined()
    expect(fixture.upstream.received('chat')).toHaveLength(2)
  })

  test('an idempotency key with another body or at another path is a conflict', async () => {
    fixture.upstream.script('chat', { kind: 'whole' })
    const key = randomUUID()
    await attempt(ask('chat'), key)
    expect(codeOf(await attempt(ask('chat', { temperature: 1 }), key))).toBe('422 idempotency_conflict')
    const elsewhere = await attempt(ask('chat'), key, { path: '/v1/completions' })
    expect(codeOf(elsewhere)).toBe('422 idempotency_conflict')
    expect(elsewhere.headers['x-should-retry']).toBe('false')
    expect(fixture.upstream.received('chat')).toHaveLength(1)
  })

  test('an idempotency key must have 1 to 255 characters', async () => {
    fixture.upstream.script('chat', { kind: 'whole' })
    for (const key of ['', 'x'.repeat(256)]) {
      const answer = await attempt(ask('chat'), key)
      expect(answer.status).toBe(400)
      expect(answer.json().error.type).toBe('invalid_request_error')
    }
    expect((await attempt(ask('chat'), 'x'.repeat(255))).status).toBe(200)
    expect((await attempt(ask('chat'), 'y')).status).toBe(200)
  })

  test('a key whose quota is exhausted still gets the answer to its idempotency key replayed, but no new answer', async () => {
    fixture.upstream.script('chat', { kind: 'whole', usage: usageText(100_000, 1) })
    const key = randomUUID()
    const first = await attempt(ask('chat', { max_tokens: 5 }), key, { key: 'poor' })
    expect(first.status, first.text).toBe(200)
    await manage(fixture.gateway.url, ADMIN, 'PUT /api/user/', { id: 4, quota: 0 })
    expect((await fixture.chat('poor', ask('chat'))).status).toBe(401)
    const second = await attempt(ask('chat', { max_tokens: 5 }), key, { key: 'poor' })
    expect(second.text).toBe(first.text)
    expect(codeOf(await attempt(ask('chat', { max_tokens: 6 }), key, { key: 'poor' }))).toBe(
      '422 idempotency_conflict',
    )
    expect(codeOf(await attempt(ask('chat'), randomUUID(), { key: 'poor' }))).toBe('401 token_exhausted')
    expect(fixture.upstream.received('chat')).toHaveLength(1)
  })

  test('an answer is replayed for its idempotency key only while the API key may still call the model', async () => {
    fixture.upstream.script('second', { kind: 'whole' })
    const key = randomUUID()
    const body = ask('second')
    expect((await attempt(body, key, { key: 'limited' })).status).toBe(200)
    const { id } = database.token('token-limited')
    const change = { id, name: 'token-limited', model_limits_enabled: true, model_limits: 'chat' }
    const changed = await manage(fixture.gateway.url, ANN, 'PUT /api/token/', change)
    expect(changed.success, changed.message).toBe(true)
    const refused = await attempt(body, key, { key: 'limited' })
    expect(codeOf(refused)).toBe('403 model_not_allowed')
  })

  test('a cancellation is replayed for its idempotency key, also if the API key may not call the model of the response', async () => {
    const provider = storingUpstream('responses')
    const [asked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    fixture.upstream.decide('responses', (request) => {
      if (!request.path.endsWith('/cancel')) return provider.decision(request)
      asked.resolve()
      return { ...provider.decision(request), after: go.promise }
    })
    const body = { model: 'responses', input: 'hi', background: true }
    const { id } = (await attempt(body, randomUUID(), { path: '/v1/responses' })).json()
    const narrow = { key: 'narrow', path: `/v1/responses/${id}/cancel` }
    expect(codeOf(await attempt(body, randomUUID(), { ...narrow, path: '/v1/responses' }))).toBe(
      '403 model_not_allowed',
    )
    const key = randomUUID()
    const running = attempt(undefined, key, narrow)
    await asked.promise
    const meanwhile = attempt(undefined, key, narrow)
    await sleep(50)
    go.resolve()
    const first = await running
    expect(first.status, first.text).toBe(200)
    for (const again of [await meanwhile, await attempt(undefined, key, narrow)]) {
      expect(again.headers['idempotency-replayed'], again.text).toBe('true')
      expect(again.text).toBe(first.text)
    }
  })
})

describe('what is kept', () => {
  test.each([400, 404, 422])(
    "a provider's error with status %s is replayed for its idempotency key, with its body",
    async (status) => {
      fixture.upstream.script(
        'messages',
        {
          kind: 'status',
          status,
          body: '{"type":"error","error":{"type":"invalid_request_error","message":"no"}}',
        },
        wholeMessage([{ text: 'Once upon' }]),
      )
      const body = { model: 'messages', max_tokens: 9, messages: [{ role: 'user', content: String(status) }] }
      const key = randomUUID()
      const first = await attempt(body, key, { path: '/v1/messages' })
      const second = await attempt(body, key, { path: '/v1/messages' })
      expect(first.status, first.text).toBe(status)
      expect(second.status).toBe(status)
      expect(second.bytes.equals(first.bytes)).toBe(true)
      expect(second.headers['idempotency-replayed']).toBe('true')
      expect(fixture.upstream.received('messages')).toHaveLength(1)
    },
  )

  test.each([429, 500, 503])(
    "a provider's error with status %s is not replayed when the call is repeated with its idempotency key",
    async (status) => {
      fixture.upstream.script('second', { kind: 'status', status, body: '{}' }, { kind: 'whole' })
      const key = randomUUID()
      expect((await attempt(ask('second'), key)).status).toBeGreaterThanOrEqual(429)
      const second = await attempt(ask('second'), key)
      expect(second.status, second.text).toBe(200)
      expect(second.headers['idempotency-replayed']).toBeUndefined()
    },
  )

  test('a refusal by the gateway itself is not replayed when the call is repeated with its idempotency key', async () => {
    const key = randomUUID()
    const refused = await attempt(ask('unknown-model'), key)
    expect(refused.status).toBe(503)
    expect((await attempt(ask('chat'), key)).status).toBe(200)
  })

  test.each(['reset', 'error', 'half frame'] as const)(
    'a stream that ends with %s is not replayed when the call is repeated with its idempotency key',
    async (ending) => {
      fixture.upstream.script('second', { kind: 'stream', events: 3, ending }, CHAT_FRAMES)
      const key = randomUUID()
      const options = { key: 'ann', headers: { 'idempotency-key': key } }
      const first = await (await open(fixture.gateway.url, askStream('second'), options)).end()
      expect(first.text).toContain('error')
      const second = await attempt(askStream('second'), key)
      expect(second.headers['idempotency-replayed']).toBeUndefined()
      expect(second.text).not.toContain('error')
      expect(second.text).toContain('[DONE]')
    },
  )

  const asked = { messages: [{ role: 'user', content: 'hi' }], max_tokens: 9 }
  const generate = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }
  const gemini = '/v1beta/models/gemini:'
  const failedChat: EndedAnswer = { text: 'half', reason: 'network_error' }
  const withError: EndedAnswer = {
    ...failedChat,
    reason: 'stop',
    more: { error: { code: 500, message: 'no' } },
  }
  const failedGemini: EndedAnswer = { text: 'half', reason: 'MALFORMED_FUNCTION_CALL' }
  const failedResponse: EndedAnswer = {
    text: 'half',
    reason: '',
    more: { status: 'failed', error: { code: 'server_error', message: 'no' }, incomplete_details: null },
  }
  const jsonOf = (upstream: Upstream, answer: EndedAnswer): Behaviour =>
    sendsJson(wholeAnswer(upstream, answer))
  const eventsOf = (upstream: Upstream, answer: EndedAnswer): Behaviour =>
    sendsFrames(streamedAnswer(upstream, answer))

  test.each<readonly [string, string, Behaviour, string, object]>([
    ['a whole answer', 'chat', jsonOf('chat', failedChat), '/v1/chat/completions', ask('chat')],
    [
      'a whole answer without content',
      'chat',
      jsonOf('chat', { ...failedChat, text: '' }),
      '/v1/chat/completions',
      ask('chat'),
    ],
    ['a choice with an error', 'chat', jsonOf('chat', withError), '/v1/chat/completions', ask('chat')],
    ['events in place of JSON', 'chat', eventsOf('chat', failedChat), '/v1/chat/completions', ask('chat')],
    ['a converted answer', 'chat', jsonOf('chat', failedChat), '/v1/messages', { model: 'chat', ...asked }],
    ['a stream', 'chat', eventsOf('chat', failedChat), '/v1/chat/completions', askStream('chat')],
    [
      'JSON in place of a stream',
      'chat',
      jsonOf('chat', failedChat),
      '/v1/chat/completions',
      askStream('chat'),
    ],
    [
      'a converted stream',
      'chat',
      eventsOf('chat', failedChat),
      '/v1/messages',
      { model: 'chat', ...asked, stream: true },
    ],
    ['a Gemini answer', 'gemini', jsonOf('gemini', failedGemini), `${gemini}generateContent`, generate],
    [
      'a Gemini stream',
      'gemini',
      eventsOf('gemini', failedGemini),
      `${gemini}streamGenerateContent?alt=sse`,
      generate,
    ],
    [
      'a response',
      'responses',
      jsonOf('responses', failedResponse),
      '/v1/responses',
      { model: 'responses', input: 'hi' },
    ],
    ['an image', 'chat', json({ error: { code: 500, message: 'no' } }), '/v1/images/generations', IMAGE],
    ['speech', 'chat', json({ error: { code: 500, message: 'no' } }), '/v1/audio/speech', SPEECH],
    [
      'an embedding',
      'chat',
      json({ error: { code: 500, message: 'no' } }),
      '/v1/embeddings',
      { model: 'chat', input: 'x' },
    ],
  ])(
    'an answer that ended with a failure is not replayed when the call is repeated with its idempotency key: %s',
    async (_, lane, failed, path, body) => {
      fixture.upstream.script(lane, failed)
      const key = randomUUID()
      await attempt(body, key, { path })
      const second = await attempt(body, key, { path })
      expect(second.headers['idempotency-replayed']).toBeUndefined()
      expect(fixture.upstream.received(lane)).toHaveLength(2)
    },
  )

  test('an answer whose end the request has caused is replayed, as a 400 of a provider is', async () => {
    const behaviour = jsonOf('gemini', { text: 'half', reason: 'MISSING_THOUGHT_SIGNATURE' })
    fixture.upstream.script('gemini', behaviour)
    const [key, path] = [randomUUID(), `${gemini}generateContent`]
    const first = await attempt(generate, key, { path })
    const second = await attempt(generate, key, { path })
    expect([first.status, second.text]).toEqual([200, first.text])
    expect(second.headers['idempotency-replayed']).toBe('true')
    expect(fixture.upstream.received('gemini')).toHaveLength(1)
  })

  test('a repeated call whose answer was too large to be stored is a 409, and never a second upstream call', async () => {
    fixture.upstream.script('second', { kind: 'whole', content: 'x'.repeat(70_000) })
    const key = randomUUID()
    const first = await attempt(ask('second'), key)
    expect(first.text).toContain('x'.repeat(70_000))
    expect(codeOf(await attempt(ask('second'), key))).toBe('409 idempotency_not_kept')
    const streamed = randomUUID()
    fixture.upstream.script('second', { kind: 'stream', events: 700, word: 'y'.repeat(200) })
    const live = await attempt(askStream('second'), streamed)
    expect(live.text.match(/y{200}/g)).toHaveLength(700)
    const refused = await attempt(askStream('second'), streamed)
    expect(codeOf(refused)).toBe('409 idempotency_not_kept')
    expect(refused.headers['x-should-retry']).toBe('false')
    expect(fixture.upstream.received('second')).toHaveLength(1)
  })
})

describe('a call under way', () => {
  test('calls that repeat the idempotency key of a running call get its whole answer, for one charge', async () => {
    const go = Promise.withResolvers<void>()
    fixture.upstream.script('slow', { kind: 'stream', events: 5, paceMs: 20, endsAfter: go.promise })
    const [key, before] = [randomUUID(), rows()]
    const first = open(fixture.gateway.url, askStream('slow'), {
      key: 'ann',
      headers: { 'idempotency-key': key },
    })
    await (await first).until('word')
    const others = Array.from({ length: 20 }, () => attempt(askStream('slow'), key))
    await sleep(50)
    go.resolve()
    const answers = await Promise.all([first.then((live) => live.end()), ...others])
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(answers.map(({ headers }) => headers['idempotency-replayed'])).toEqual([
      undefined,
      ...others.map(() => 'true'),
    ])
    await expect.poll(rows).toBe(before + 1)
    expect(fixture.upstream.received('slow')).toHaveLength(1)
  })

  test('the answer of a running call is withheld from an API key that may no longer call the model', async () => {
    const go = Promise.withResolvers<void>()
    fixture.upstream.script('slow', { kind: 'stream', events: 5, endsAfter: go.promise })
    const key = randomUUID()
    const first = await open(fixture.gateway.url, askStream('slow'), {
      key: 'changing',
      headers: { 'idempotency-key': key },
    })
    await first.until('word')
    const { id } = database.token('token-changing')
    const change = { id, name: 'token-changing', model_limits_enabled: true, model_limits: 'chat' }
    const changed = await manage(fixture.gateway.url, ANN, 'PUT /api/token/', change)
    expect(changed.success, changed.message).toBe(true)
    const second = attempt(askStream('slow'), key, { key: 'changing' })
    await Promise.race([second, sleep(500)])
    go.resolve()
    await first.end()
    expect(codeOf(await second)).toBe('403 model_not_allowed')
  })

  test('a call with an idempotency key is read to its end when its client leaves, and charged once in full', async () => {
    const go = Promise.withResolvers<void>()
    fixture.upstream.script('slow', {
      kind: 'stream',
      events: 5,
      endsAfter: go.promise,
      usage: usageText(10, 50),
    })
    const key = randomUUID()
    const live = await open(fixture.gateway.url, askStream('slow'), {
      key: 'ann',
      headers: { 'idempotency-key': key },
    })
    await live.until('word')
    await sleep(CERTAINLY_GONE_MS)
    live.abort()
    await sleep(100)
    const id = String(live.headers['x-request-id'])
    expect(database.usageOf(id)).toBeUndefined()
    go.resolve()
    await expect.poll(() => database.usageOf(id)).toMatchObject({ reason: 'complete', output_tokens: 50 })
    const second = await attempt(askStream('slow'), key)
    expect(second.text).toContain('[DONE]')
    expect(second.headers['x-request-id']).toBe(id)
    expect(second.headers['idempotency-replayed']).toBe('true')
    expect(fixture.upstream.received('slow')).toHaveLength(1)
  })

  test('an answer whose client left before it arrived is replayed when the call is repeated', async () => {
    const go = Promise.withResolvers<void>()
    fixture.upstream.script('slow', { kind: 'whole', after: go.promise })
    const key = randomUUID()
    const leaving = new AbortController()
    const headers = {
      authorization: 'Bearer sk-ann',
      'content-type': 'application/json',
      'idempotency-key': key,
    }
    const gone = fetch(`${fixture.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers,
      body: JSON.stringify(ask('slow')),
      signal: leaving.signal,
    })
    await fixture.upstream.receivedAtLeast('slow', 1)
    leaving.abort()
    await expect(gone).rejects.toThrow()
    const second = attempt(ask('slow'), key)
    await sleep(50)
    go.resolve()
    expect((await second).text).toBe(completionText('Hello there.', usageText(10, 5), 'slow'))
    expect(fixture.upstream.received('slow')).toHaveLength(1)
  })

  test('at most 64 calls with idempotency keys of a user continue after their clients left; further ones are aborted upstream', async () => {
    fixture.upstream.script('slow', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 50 })
    const lives = await Promise.all(
      Array.from({ length: 66 }, () =>
        open(fixture.gateway.url, askStream('slow'), {
          key: 'other',
          headers: { 'idempotency-key': randomUUID() },
        }),
      ),
    )
    await Promise.all(lives.map((live) => live.until('word')))
    await sleep(CERTAINLY_GONE_MS)
    for (const live of lives) live.abort()
    const underWay = (): number =>
      fixture.upstream.received('slow').filter(({ endedAt }) => endedAt === undefined).length
    await expect.poll(underWay).toBe(64)
    await sleep(300)
    expect(underWay()).toBe(64)
    const metrics = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/metrics' })
    expect(metrics.text).toMatch(/sluice_idempotency_total\{result="left"\} \d+/)
  })
})
