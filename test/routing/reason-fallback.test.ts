import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import {
  type Behaviour,
  contentFrame,
  DONE_FRAME,
  errorBody,
  roleFrame,
  usageText,
} from '../fixtures/behaviour.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** `docs/configuration.md: Fallback`. */
const ADMIN = { id: ROOT.id, accessToken: ROOT.access_token }
const PLAIN = { input: 2, output: 8 }
const DEAR = { input: 20, output: 80 }
const LANES = ['x', 'large', 'larger', 'open']

const refused = (code: string | null, message = 'no'): Behaviour => ({
  kind: 'status',
  status: 400,
  body: errorBody(message, 'invalid_request_error', code),
})
const TOO_LONG = refused('context_length_exceeded')
const FILTERED = refused('content_filter')
const ANSWER: Behaviour = { kind: 'whole', usage: usageText(10, 5) }

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: {
      x: { price: PLAIN, context_fallback: ['large', 'larger'], content_fallback: ['open'] },
      plain: { price: PLAIN },
      large: { price: DEAR },
      larger: { price: DEAR },
      open: { price: DEAR },
    },
    channels: LANES.map((lane) =>
      channel(lane, upstream.baseUrl(lane), { models: lane === 'x' ? ['x', 'plain'] : [lane] }),
    ),
    guards: [{ name: 'watch', do: 'flag', match: { words: ['yonder'] }, tokens: ['guarded'] }],
    users: [
      ROOT,
      user(2, 'ann', [
        token('ann'),
        token('narrow', { model_limits_enabled: true, model_limits: 'x' }),
        token('small', { remain_quota: 400 }),
        token('guarded', { name: 'guarded' }),
      ]),
    ],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())
beforeEach(() => {
  for (const lane of LANES) {
    fixture.upstream.script(lane, ANSWER)
    fixture.upstream.forget(lane)
  }
})

const called = (): number[] => LANES.map((lane) => fixture.upstream.received(lane).length)

describe('a request that is too long', () => {
  test.each([
    ['its code', TOO_LONG],
    ["Anthropic's words", refused(null, 'prompt is too long: 210000 tokens > 200000 maximum')],
    [
      "Google's words",
      refused(
        null,
        'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
      ),
    ],
    ["Bedrock's words", refused(null, 'Input is too long for requested model.')],
    [
      "OpenAI's words",
      refused(null, "This model's maximum context length is 8192 tokens. However, your messages have 9000."),
    ],
  ])('goes to the first context_fallback by %s, at the price of that model', async (_, behaviour) => {
    fixture.upstream.script('x', behaviour)
    const answer = await fixture.chat('narrow', ask('x', { max_tokens: 20 }))
    expect(answer.status, answer.text).toBe(200)
    expect(answer.headers['x-gateway-model']).toBe('large')
    expect(called()).toEqual([1, 1, 0, 0])
    expect(database.usageOf(String(answer.headers['x-request-id']))).toMatchObject({
      model: 'large',
      requested_model: 'x',
      quota: 10 * 10 + 5 * 40,
    })
  })

  test('goes to the next context_fallback if it is too long for the first one as well', async () => {
    fixture.upstream.script('x', TOO_LONG)
    fixture.upstream.script('large', TOO_LONG)
    expect((await fixture.chat('ann', ask('x'))).headers['x-gateway-model']).toBe('larger')
    expect(called()).toEqual([1, 1, 1, 0])
  })

  test('that is too long for all models is the 400 of the provider', async () => {
    for (const lane of ['x', 'large', 'larger']) fixture.upstream.script(lane, TOO_LONG)
    const answer = await fixture.chat('ann', ask('x'))
    expect(answer.status).toBe(400)
    expect(answer.json().error.code).toBe('context_length_exceeded')
    expect(called()).toEqual([1, 1, 1, 0])
  })

  test('for a model without context_fallback is the 400 of the provider', async () => {
    fixture.upstream.script('x', TOO_LONG)
    expect((await fixture.chat('ann', ask('plain'))).status).toBe(400)
    expect(called()).toEqual([1, 0, 0, 0])
  })

  test('is not told by words that the request itself contains', async () => {
    const words = 'prompt is too long'
    fixture.upstream.script('x', refused(null, `${words}, you said`))
    const messages = [{ role: 'user', content: `say: ${words}` }]
    expect((await fixture.chat('ann', ask('x', { messages }))).status).toBe(400)
    expect(called()).toEqual([1, 0, 0, 0])
  })
})

const filteredWhole: Behaviour = {
  kind: 'whole',
  body: JSON.stringify({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: null }, finish_reason: 'content_filter' }],
    usage: { prompt_tokens: 10, completion_tokens: 0, total_tokens: 10 },
  }),
}
const end = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'content_filter' }] })}\n\n`
const filteredStream = (...before: string[]): Behaviour => ({
  kind: 'stream',
  frames: [roleFrame(), ...before, end, DONE_FRAME],
})

describe('a request that is filtered', () => {
  test.each([
    ['an error', FILTERED, ask('x'), 'ann'],
    ['an answer without content', filteredWhole, ask('x'), 'ann'],
    ['an answer without content that a guard checks', filteredWhole, ask('x'), 'guarded'],
    ['a stream without content', filteredStream(), askStream('x'), 'ann'],
    ['a stream without content that a guard checks', filteredStream(), askStream('x'), 'guarded'],
  ])('with %s goes to the content_fallback', async (_, behaviour, body, key) => {
    fixture.upstream.script('x', behaviour)
    if (body['stream']) fixture.upstream.script('open', { kind: 'stream', events: 2 })
    const answer = await fixture.chat(key, body)
    expect(answer.status, answer.text).toBe(200)
    expect(answer.headers['x-gateway-model']).toBe('open')
    expect(answer.text).not.toContain('content_filter')
    expect(called()).toEqual([1, 0, 0, 1])
  })

  test('after content stays with the model', async () => {
    fixture.upstream.script('x', filteredStream(contentFrame('begun')))
    const answer = await fixture.chat('ann', askStream('x'))
    expect(answer.text).toContain('begun')
    expect(answer.text).toContain('content_filter')
    expect(called()).toEqual([1, 0, 0, 0])
  })

  test('after its first events have waited for a second stays with the model', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const rest = { after: promise, frames: [end, DONE_FRAME] }
    fixture.upstream.script('x', { kind: 'stream', frames: [roleFrame()], rest, ending: 'no done' })
    const live = await fixture.live('ann', askStream('x'))
    await live.until('"role"')
    resolve()
    expect((await live.end()).text).toContain('content_filter')
    expect(called()).toEqual([1, 0, 0, 0])
  })

  test('by the last model as well gets the answer of that model', async () => {
    fixture.upstream.script('x', FILTERED)
    fixture.upstream.script('open', filteredWhole)
    const answer = await fixture.chat('ann', ask('x'))
    expect(answer.status).toBe(200)
    expect(answer.text).toContain('content_filter')
  })
})

test('the hold of a call covers the price of the models for long and filtered requests', async () => {
  expect((await fixture.chat('small', ask('x', { max_tokens: 10 }))).status).toBe(403)
  expect((await fixture.chat('small', ask('plain', { max_tokens: 10 }))).status).toBe(200)
})

test('a model that fails otherwise does not go on with these models', async () => {
  fixture.upstream.script('x', { kind: 'status', status: 503, body: errorBody('no') })
  expect((await fixture.chat('ann', ask('x'))).status).toBe(503)
  expect(called()).toEqual([1, 0, 0, 0])
})

test('context_fallback and content_fallback are options, like fallback', async () => {
  const { url } = fixture.gateway
  const put = (key: string, value: string) =>
    manage(url, ADMIN, 'PUT /api/option/', { key, value }).catch((error: unknown) => error)
  await put('ModelContextFallback', '{"novel": ["large"]}')
  await put('ModelContentFallback', '{"novel": ["open"]}')
  const { data } = await manage<{ key: string; value: string }[]>(url, ADMIN, 'GET /api/option/')
  const values = Object.fromEntries(data.map(({ key, value }) => [key, value]))
  expect(JSON.parse(values['ModelContextFallback'] ?? '{}')).toMatchObject({ novel: ['large'] })
  expect(JSON.parse(values['ModelContentFallback'] ?? '{}')).toMatchObject({ novel: ['open'] })
})
