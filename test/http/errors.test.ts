import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Behaviour, errorBody } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const PASSED_ON = [400, 404, 409, 413, 422, 429, 500, 503, 529]
/** Responses that are not valid. */
const INVALID_ANSWERS: [string, Behaviour][] = [
  ['418', { kind: 'status', status: 418, body: errorBody('canary teapot') }],
  ['402', { kind: 'status', status: 402, body: errorBody('canary payment') }],
  ['204', { kind: 'status', status: 204 }],
  ['301', { kind: 'status', status: 301, headers: { location: 'http://127.0.0.1:1/canary' } }],
  ['307', { kind: 'status', status: 307, headers: { location: 'http://127.0.0.1:1/canary' } }],
  [
    '502',
    { kind: 'status', status: 502, body: '<html>canary</html>', headers: { 'content-type': 'text/html' } },
  ],
  ['html', { kind: 'whole', body: '<html>canary</html>', headers: { 'content-type': 'text/html' } }],
  ['half json', { kind: 'whole', body: '{"id":"canary","choices":[{"mess' }],
  ['no object', { kind: 'whole', body: '"canary"' }],
  ['null', { kind: 'whole', body: 'null' }],
  [
    'cut',
    { kind: 'raw', bytes: 'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"canary":', ending: 'close' },
  ],
  ['dropped', { kind: 'drop' }],
  ['silent', { kind: 'silence' }],
]
const MODELS = [
  ...PASSED_ON.map((code) => `e${code}`),
  ...INVALID_ANSWERS.map(([name]) => `rubbish-${name.replaceAll(' ', '-')}`),
  'quiet',
  'leaky',
]

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced([...MODELS, 'unreachable']),
    channels: [
      ...MODELS.map((model) =>
        channel(
          model,
          upstream.baseUrl(model),
          // The other models may answer late on a busy machine, so only this one has a short timeout.
          model === 'rubbish-silent' ? { timeouts: { first_byte: '400ms' } } : {},
        ),
      ),
      channel('unreachable', 'http://127.0.0.1:1/v1'),
      channel('priceless', upstream.baseUrl('priceless'), { models: ['nobody-knows-its-price'] }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('poor', { remain_quota: 5 })])],
  }))
})
afterAll(() => fixture?.close())

const REQUEST_ID = /\(request id: ([^()\s]+)\)$/

describe('an upstream error', () => {
  test.each(PASSED_ON)(
    "an upstream error with status %i keeps its status and message, in the gateway's error format",
    async (status) => {
      fixture.upstream.script(`e${status}`, {
        kind: 'status',
        status,
        body: errorBody(`what went wrong: ${status}`, 'some_type', 'some_code'),
        headers: { 'retry-after': '17' },
      })
      const answer = await fixture.chat('ann', ask(`e${status}`))
      expect(answer.status).toBe(status)
      const { error } = answer.json()
      expect(error.message).toContain(`what went wrong: ${status}`)
      expect(error.type).toBe('some_type')
      expect(error.code).toBe('some_code')
      expect(answer.headers['content-type']).toMatch(/^application\/json/)
      // Waiting does not help a request that is refused for itself.
      expect(answer.headers['retry-after']).toBe([400, 404, 413, 422].includes(status) ? undefined : '17')
    },
  )

  test.each([
    [400, 'invalid_request_error', 'bad_request'],
    [404, 'invalid_request_error', 'not_found'],
    [409, 'invalid_request_error', 'conflict'],
    [413, 'request_too_large', 'request_too_large'],
    [422, 'invalid_request_error', 'unprocessable_entity'],
    [429, 'rate_limit_error', 'rate_limit_exceeded'],
    [500, 'api_error', 'server_error'],
    [503, 'api_error', 'service_unavailable'],
    [529, 'overloaded_error', 'overloaded'],
  ])(
    'an upstream error with status %i and no type gets the type %s and the code %s',
    async (status, type, code) => {
      for (const body of [
        '{"error":{"message":"no"}}',
        '{"error":{"message":"no","type":null}}',
        '{"error":{"message":"no","type":""}}',
        '{"type":"error","message":"no"}',
        '{"type":"https://errors.example/x","title":"no"}',
      ]) {
        fixture.upstream.script(`e${status}`, { kind: 'status', status, body })
        expect((await fixture.chat('ann', ask(`e${status}`))).json().error).toMatchObject({ type, code })
      }
    },
  )

  test.each([
    ['Fri, 20 Nov 2026 10:00:30 GMT', 'Fri, 20 Nov 2026 10:00:30 GMT'],
    ['soon', undefined],
    ['-1', undefined],
    ['1.5', undefined],
    ['7, 8', undefined],
    ['<script>alert(1)</script>', undefined],
    ['Fri, 99 Nov 2026 10:00:30 GMT', undefined],
  ])('an upstream error with retry-after %j reaches the client with retry-after %j', async (given, told) => {
    fixture.upstream.script('e409', {
      kind: 'status',
      status: 409,
      body: errorBody('no'),
      headers: { 'retry-after': given },
    })
    const answer = await fixture.chat('ann', ask('e409'))
    expect(answer.status).toBe(409)
    expect(answer.headers['retry-after']).toBe(told)
  })

  test('an upstream error for a call that requested a stream is sent as a JSON response with the status of the error', async () => {
    fixture.upstream.script('e429', { kind: 'status', status: 429, body: errorBody('busy') })
    const answer = await fixture.chat('ann', askStream('e429'))
    expect(answer.status).toBe(429)
    expect(answer.headers['content-type']).toMatch(/^application\/json/)
    expect(answer.json().error.message).toContain('busy')
  })

  test.each(['<html>canary</html>', '', '"text"', '{"detail":"canary detail"}', '{"error":"canary text"}'])(
    "an upstream error with the body %j is sent in the gateway's error format",
    async (body) => {
      fixture.upstream.script('e400', { kind: 'status', status: 400, body })
      const answer = await fixture.chat('ann', ask('e400'))
      expect(answer.status).toBe(400)
      expect(answer.json().error).toEqual({
        message: expect.any(String),
        type: expect.any(String),
        code: expect.any(String),
      })
      expect(answer.text).not.toContain('<html>')
    },
  )

  test('an upstream error never shows the key or the address of the channel', async () => {
    fixture.upstream.script('leaky', {
      kind: 'status',
      status: 400,
      body: errorBody(`bad call to ${fixture.upstream.baseUrl('leaky')} with upstream-key-of-leaky`),
    })
    const { text } = await fixture.chat('ann', ask('leaky'))
    expect(text).toContain('bad call')
    expect(text).not.toContain('upstream-key-of-leaky')
    expect(text).not.toContain(`127.0.0.1:${fixture.upstream.port}`)
  })
})

describe('upstream failures without details', () => {
  const failure = async (model: string, body: object): Promise<void> => {
    const answer = await fixture.chat('ann', body)
    expect(answer.status, answer.text).toBe(500)
    const { error } = answer.json()
    expect(error.type).toBe('api_error')
    expect(error.code).toBeTypeOf('string')
    expect(error.message).toMatch(REQUEST_ID)
    expect(answer.text).not.toMatch(new RegExp(`canary|127\\.0\\.0\\.1|upstream-key-of-${model}`))
  }
  test.each(INVALID_ANSWERS)(
    'the client gets a 500 api_error without details when the upstream sends %s',
    async (name, behaviour) => {
      const model = `rubbish-${name.replaceAll(' ', '-')}`
      fixture.upstream.script(model, behaviour)
      await failure(model, ask(model))
    },
  )
  test('the client gets a 500 api_error without details when the upstream cannot be reached', () =>
    failure('unreachable', ask('unreachable')))
  test('the client gets a 500 api_error without details when the upstream sends JSON instead of the requested stream', async () => {
    fixture.upstream.script('rubbish-null', { kind: 'whole', body: '[]' })
    await failure('rubbish-null', askStream('rubbish-null'))
  })
})

describe('an error of the gateway itself', () => {
  test('an error of the gateway has the id of its request, the same as in the header', async () => {
    const answer = await fixture.chat('ann', ask('no-such-model'))
    const id = REQUEST_ID.exec(answer.json().error.message)?.[1]
    expect(id).toBeTypeOf('string')
    expect(answer.headers['x-request-id']).toBe(id)
  })

  test('an error for a model without a price names the model: 400 model_price_error', async () => {
    const answer = await fixture.chat('ann', ask('nobody-knows-its-price'))
    expect(answer.status).toBe(400)
    expect(answer.json().error).toMatchObject({ type: 'invalid_request_error', code: 'model_price_error' })
    expect(answer.json().error.message).toContain('nobody-knows-its-price')
    expect(fixture.upstream.received('priceless')).toHaveLength(0)
  })

  test('an error for a quota that is too small states the remaining and the needed quota', async () => {
    fixture.upstream.script('quiet', { kind: 'whole' })
    const answer = await fixture.chat('poor', ask('quiet', { max_tokens: 1000 }))
    expect(answer.status).toBe(403)
    const { error } = answer.json()
    expect(error).toMatchObject({ type: 'permission_error', code: 'insufficient_quota' })
    const numbers = (error.message.replace(REQUEST_ID, '').match(/\d+/g) ?? []).map(Number)
    expect(numbers).toContain(5)
    // A thousand tokens of output at four units each, and a prompt.
    expect(numbers.some((number) => number > 4000 && number < 5000)).toBe(true)
    expect(fixture.upstream.received('quiet')).toHaveLength(0)
  })
})

describe('an unknown path or method', () => {
  test.each([
    ['POST', '/'],
    ['GET', '/nope'],
    ['GET', '/v1'],
    ['POST', '/v1/chat/completions/more'],
    ['POST', '/v2/chat/completions'],
    ['GET', '/etc/passwd'],
    ['GET', '/../../etc/passwd'],
    ['POST', '/%2e%2e/v1/chat/completions'],
    ['GET', '/v1/chat%2Fcompletions'],
  ])('an unknown path is a 404 in an error envelope: %s %s', async (method, path) => {
    const answer = await call(fixture.gateway.url, undefined, { method, path, key: 'ann' })
    expect(answer.status).toBe(404)
    expect(answer.json().error).toMatchObject({ message: expect.any(String), type: expect.any(String) })
  })
  test.each(['GET', 'PUT', 'DELETE', 'PATCH'])(
    'a request for chat completions with the method %s is refused with 404 or 405',
    async (method) => {
      const answer = await call(fixture.gateway.url, undefined, { method, key: 'ann' })
      expect(answer.status).toBeOneOf([404, 405])
      expect(answer.json().error.message).toMatch(REQUEST_ID)
    },
  )
})

test('the log contains neither keys nor prompts', async () => {
  const secret = 'canary-prompt-3f9b1c'
  fixture.upstream.script('leaky', { kind: 'whole' })
  await fixture.chat('ann', { model: 'leaky', messages: [{ role: 'user', content: secret }] })
  await fixture.chat('ann', { model: 'leaky', messages: secret })
  await fixture.chat('canaryunknownkey', ask('leaky'))
  expect(fixture.gateway.logs()).not.toMatch(/canary-prompt|canaryunknownkey|sk-ann|upstream-key-of/)
})
