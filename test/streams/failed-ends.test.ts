import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { askingClients, CLIENTS } from '../fixtures/asking-clients.ts'
import { type Behaviour, completionText, usageText } from '../fixtures/behaviour.ts'
import { channelHealth } from '../fixtures/channel-health.ts'
import { type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import {
  type EndedAnswer,
  sendsFrames,
  sendsJson,
  streamedAnswer,
  wholeAnswer,
} from '../fixtures/ended-answers.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { askRerank, rerank, ranked } from '../fixtures/rerank-fixture.ts'

/** `docs/api.md: How an answer ends`, and what follows for other channels, money and health. */
const LANES = ['first', 'second', 'third', 'alone', 'claude', 'codex', 'google', 'tei'] as const
const ADMIN = { id: ROOT.id, accessToken: ROOT.access_token }

let fixture: Fixture
let database: GatewayDatabase
let asks: ReturnType<typeof askingClients>
beforeAll(async () => {
  const countedLanes = COUNTED_OF.map(([, , lane]) => lane)
  fixture = await startFixture((upstream) => ({
    options: { retries: 3, unknown_tools: 'refuse' },
    models: priced(['m', ...LANES, ...countedLanes]),
    channels: [
      ...['first', 'second', 'third'].map((name, at) =>
        channel(name, upstream.baseUrl(name), { models: ['m'], priority: 3 - at }),
      ),
      channel('alone', upstream.baseUrl('alone')),
      ...countedLanes.map((name) => channel(name, upstream.baseUrl(name), { priority: 1 })),
      channel('spare', upstream.baseUrl('spare'), { models: countedLanes }),
      channel('claude', upstream.baseUrl('claude'), { protocol: 'messages' }),
      channel('codex', upstream.baseUrl('codex'), { protocol: 'responses' }),
      channel('google', upstream.baseUrl('google'), { protocol: 'gemini' }),
      channel('tei', upstream.baseUrl('tei'), { protocol: 'rerank' }),
    ],
    guards: [{ name: 'watch', do: 'flag', match: { words: ['yonder'] }, tokens: ['guarded'] }],
    users: [ROOT, user(2, 'ann', [token('ann'), token('guarded', { name: 'guarded' })])],
  }))
  database = databaseOf(fixture.gateway.dataDir)
  asks = askingClients(fixture.gateway.url, 'sk-ann')
})
afterAll(() => fixture?.close())
beforeEach(() => {
  for (const lane of LANES) fixture.upstream.script(lane, GOOD)
})

const GOOD: Behaviour = { kind: 'whole', content: 'good', usage: usageText(10, 5) }
const GOOD_CHARGE = 10 + 5 * 4
const WORDS = 'canary words of the provider'
const FAILED: EndedAnswer = { text: 'half', reason: 'error', usage: [100, 7] }
const failedWhole = (fields: Partial<EndedAnswer> = {}): Behaviour =>
  sendsJson(wholeAnswer('chat', { ...FAILED, ...fields }))

const called = (...lanes: string[]): number[] => lanes.map((lane) => fixture.upstream.received(lane).length)
const messages = [{ role: 'user', content: 'hi' }]
const askClaude = (model: string, fields: object = {}): Promise<FullResponse> =>
  fixture.chat('ann', { model, messages, max_tokens: 50, ...fields }, { path: '/v1/messages' })

/** The row of a call, once it is written. */
async function rowOf(answer: FullResponse): Promise<Record<string, unknown>> {
  const id = String(answer.headers['x-request-id'])
  await expect.poll(() => database.usageOf(id)).toBeDefined()
  const { data } = await manage<Record<string, unknown>>(fixture.gateway.url, ADMIN, `GET /api/log/${id}`)
  return data
}

describe('a whole answer that ended with a failure', () => {
  test('is replaced by that of the next channel, and only the delivered answer is charged', async () => {
    fixture.upstream.script('first', failedWhole())
    const answer = await fixture.chat('ann', ask('m'))
    expect(answer.json().choices[0]?.message.content).toBe('good')
    expect(called('first', 'second')).toEqual([1, 1])
    expect(await rowOf(answer)).toMatchObject({ quota: GOOD_CHARGE, channel: 'second', note: '' })
  })

  test('is tried again once at most if it reports its usage', async () => {
    for (const lane of ['first', 'second']) fixture.upstream.script(lane, failedWhole())
    await fixture.chat('ann', ask('m'))
    expect(called('first', 'second', 'third')).toEqual([1, 1, 0])
    for (const lane of ['first', 'second']) fixture.upstream.script(lane, failedWhole({ usage: null }))
    await fixture.chat('ann', ask('m'))
    expect(called('first', 'second', 'third')).toEqual([1, 1, 1])
  })

  test.each(['half', ''])('is tried again once at most if a choice states its error: %j', async (text) => {
    const behaviour = failedWhole({ text, reason: 'stop', more: ERROR_OF_CHOICE })
    for (const asked of [() => fixture.chat('ann', ask('m')), () => askClaude('m')]) {
      for (const lane of ['first', 'second', 'third']) {
        fixture.upstream.script(lane, behaviour)
        fixture.upstream.forget(lane)
      }
      await asked()
      expect(called('first', 'second', 'third')).toEqual([1, 1, 0])
    }
  })

  test('reaches a client of its protocol byte for byte if nothing else answers, and is charged', async () => {
    const body = wholeAnswer('chat', FAILED)
    fixture.upstream.script('alone', sendsJson(body))
    const answer = await fixture.chat('ann', ask('alone'))
    expect([answer.status, answer.text]).toEqual([200, body])
    expect(await rowOf(answer)).toMatchObject({ quota: 100 + 7 * 4 })
  })

  test('is an error for another client, and its reported usage is charged within the hold', async () => {
    fixture.upstream.script('alone', failedWhole())
    const answer = await askClaude('alone')
    expect(answer.status).toBe(500)
    expect(await rowOf(answer)).toMatchObject({ quota: 100 + 7 * 4, error_status: 500 })
    fixture.upstream.script('alone', failedWhole({ usage: [2_000, 2_000] }))
    const dear = await rowOf(await askClaude('alone'))
    expect(dear['quota']).toBeLessThan(2_000)
    expect(dear['quota']).toBeGreaterThan(50 * 4)
  })

  test('is not charged if the last attempt reports no usage', async () => {
    fixture.upstream.script('first', failedWhole())
    const refused: Behaviour = {
      kind: 'status',
      status: 500,
      body: JSON.stringify({ error: { message: WORDS } }),
    }
    for (const lane of ['second', 'third']) fixture.upstream.script(lane, refused)
    const answer = await fixture.chat('ann', ask('m'))
    expect(answer.json().error.message).toBe(WORDS)
    expect(await rowOf(answer)).toMatchObject({ quota: 0 })
  })

  test('with an error of its choice is that error for other clients', async () => {
    const more = { error: { code: 429, message: WORDS } }
    fixture.upstream.script('alone', failedWhole({ more, text: '{"a": "ha' }))
    const answer = await askClaude('alone')
    expect(answer.status).toBe(429)
    expect(answer.text).toContain(WORDS)
  })
})

test('a stream that fails after content ends with an error, after the frame of the provider, and is charged as a cut one', async () => {
  const frames = streamedAnswer('chat', FAILED)
  fixture.upstream.script('alone', sendsFrames(frames))
  const answer = await fixture.chat('ann', askStream('alone'))
  expect(answer.text).toContain('half')
  expect(answer.text.trimEnd().split('\n\n').at(-1)).toMatch(/^data: \{"error":/)
  expect(answer.text).not.toContain('[DONE]')
  expect(await rowOf(answer)).toMatchObject({ prompt_tokens: 100, completion_tokens: 7 })
})

test('a native stream that fails with its first event is replaced by that of the next channel', async () => {
  const [, failed = '', ...rest] = streamedAnswer('chat', FAILED)
  fixture.upstream.script('first', sendsFrames([failed, ...rest]))
  fixture.upstream.script('second', { kind: 'stream', word: 'good' })
  const answer = await fixture.chat('ann', askStream('m'))
  expect(answer.text).toContain('good')
  expect(answer.text).toContain('[DONE]')
  expect(called('first', 'second')).toEqual([1, 1])
})

const ERROR_OF_CHOICE = { error: { code: 500, message: WORDS } }
const TOOL_CALLS = [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }]

/** Failures by the channel that they happen at, and whether its health counts them. */
const COUNTED: Readonly<Record<string, readonly [fields: Partial<EndedAnswer>, isCounted: boolean]>> = {
  network_error: [{ reason: 'network_error' }, true],
  malformed_tool_use: [{ reason: 'malformed_tool_use' }, false],
  empty: [{ text: '', reason: 'stop', more: ERROR_OF_CHOICE }, true],
  content: [{ reason: 'stop', more: ERROR_OF_CHOICE }, false],
  call: [
    {
      reason: 'tool_calls',
      more: { ...ERROR_OF_CHOICE, message: { role: 'assistant', tool_calls: TOOL_CALLS } },
    },
    false,
  ],
}
const COUNTED_OF = Object.keys(COUNTED).flatMap((name) =>
  (['chat', 'messages'] as const).map((client) => [name, client, `${client}-${name}`] as const),
)

test.each(COUNTED_OF)(
  'the health of a channel counts a failure with %s only if it is its own: %s',
  async (name, client, lane) => {
    const [fields, isCounted] = COUNTED[name] ?? []
    fixture.upstream.script(lane, failedWhole({ usage: null, ...fields }))
    const asked = (): Promise<FullResponse> =>
      client === 'chat' ? fixture.chat('ann', ask(lane)) : askClaude(lane)
    for (let calls = 0; calls < 6; calls += 1) await asked()
    // The rest of the channel may be over by now; its next call then decides.
    const health = await channelHealth(fixture.gateway.url, lane)
    expect(health?.state).toMatch(isCounted ? /^(resting|probing)$/ : /^works$/)
  },
)

test.each(['whole', 'streamed'])(
  'an unknown reason counts as a good end, and the row has a note: %s',
  async (form) => {
    const answer: EndedAnswer = { text: 'said', reason: 'unheard_of' }
    fixture.upstream.script(
      'alone',
      form === 'whole' ? sendsJson(wholeAnswer('chat', answer)) : sendsFrames(streamedAnswer('chat', answer)),
    )
    for (const asked of [
      fixture.chat('ann', form === 'whole' ? ask('alone') : askStream('alone')),
      fixture.chat('guarded', form === 'whole' ? ask('alone') : askStream('alone')),
      askClaude('alone', { stream: form !== 'whole' }),
    ])
      expect(await rowOf(await asked)).toMatchObject({ note: 'unknown_end', quota: GOOD_CHARGE })
  },
)

test.each(['whole', 'streamed'])(
  'an incomplete response with an unknown reason has a good end for a client of another protocol: %s',
  async (form) => {
    const answer: EndedAnswer = { text: 'said', reason: 'unheard_of' }
    const isWhole = form === 'whole'
    fixture.upstream.script(
      'codex',
      isWhole
        ? sendsJson(wholeAnswer('responses', answer))
        : sendsFrames(streamedAnswer('responses', answer)),
    )
    const asked = await askClaude('codex', { stream: !isWhole })
    expect(asked.text).toContain('"stop_reason":"end_turn"')
    expect(await rowOf(asked)).toMatchObject({ note: 'unknown_end' })
  },
)

test('a signature that is missing in the request is a 400 with the words of Google, and nothing else is tried', async () => {
  const answer: EndedAnswer = { text: '', reason: 'MISSING_THOUGHT_SIGNATURE', message: WORDS }
  fixture.upstream.script('google', sendsJson(wholeAnswer('gemini', answer)))
  const { error } = await asks('chat', 'google', false)
  expect(error).toMatchObject({ status: 400, message: expect.stringContaining(WORDS) })
  expect(called('google')).toEqual([1])
})

describe('a response that fails after its first event', () => {
  const begun = 'event: response.created\ndata: {"type":"response.created","response":{"id":"resp_1"}}\n\n'
  const failed = (code: string): string =>
    `event: response.failed\ndata: ${JSON.stringify({ type: 'response.failed', response: { id: 'resp_1', status: 'failed', error: { code, message: WORDS } } })}\n\n`

  test.each(CLIENTS)('is an error with the status of its code: %s', async (client) => {
    fixture.upstream.script('codex', sendsFrames([begun, failed('context_length_exceeded')]))
    const { error } = await asks(client, 'codex', true)
    expect(error).toMatchObject({ status: 400, message: expect.stringContaining(WORDS) })
  })

  test('ends the stream with that error once the first event has waited for a second', async () => {
    const { promise: later, resolve } = Promise.withResolvers<void>()
    fixture.upstream.script('codex', {
      kind: 'stream',
      frames: [begun],
      rest: { after: later, frames: [failed('context_length_exceeded')] },
      ending: 'no done',
    })
    const live = await fixture.live(
      'ann',
      { model: 'codex', input: 'hi', stream: true },
      { path: '/v1/responses' },
    )
    await live.until('response.created')
    resolve()
    const { text } = await live.end()
    expect(text.replaceAll(/resp_\w+/g, 'resp_1')).toBe(begun + failed('context_length_exceeded'))
  })
})

/** Bodies with which providers refuse a request. */
const REFUSALS: readonly object[] = [
  { message: WORDS },
  { error: WORDS },
  { error: { message: WORDS } },
  { detail: WORDS },
  { detail: [{ loc: ['body'], msg: WORDS }] },
  { detail: { msg: WORDS } },
  { object: 'error', message: { detail: [{ msg: WORDS }] } },
  { errors: [{ message: WORDS }] },
  { error_code: 18, error_msg: WORDS },
  { code: 1214, msg: WORDS },
  {
    error: {
      message: 'Provider returned error',
      metadata: { raw: JSON.stringify({ error: { message: WORDS } }) },
    },
  },
  { base_resp: { status_code: 2013, status_msg: WORDS } },
]

test('the words of a provider are found in every form', async () => {
  for (const body of REFUSALS) {
    fixture.upstream.script('alone', { kind: 'status', status: 422, body: JSON.stringify(body) })
    const answer = await fixture.chat('ann', ask('alone'))
    expect([answer.status, answer.json().error.message]).toEqual([422, expect.stringContaining(WORDS)])
    expect(answer.text).not.toContain('the upstream answered')
  }
})

test('a context that is too long is told to clients of each protocol in the words after which they shorten it', async () => {
  const said = "This model's maximum context length is 8192 tokens."
  const refusals: Readonly<Record<string, object>> = {
    alone: { error: { message: said, type: 'invalid_request_error', code: null } },
    claude: { type: 'error', error: { type: 'invalid_request_error', message: said } },
    codex: { error: { message: said, code: 'context_length_exceeded' } },
  }
  for (const [lane, body] of Object.entries(refusals)) {
    fixture.upstream.script(lane, { kind: 'status', status: 400, body: JSON.stringify(body) })
    for (const client of ['chat', 'responses'] as const)
      expect(await asks(client, lane, false)).toMatchObject({
        error: { status: 400, code: 'context_length_exceeded', message: expect.stringContaining(said) },
      })
    expect((await asks('gemini', lane, false)).error?.message).toContain('"message":"The input token count')
    if (lane === 'claude') continue
    const answer = await askClaude(lane)
    expect(JSON.parse(answer.text)).toMatchObject({
      error: { type: 'invalid_request_error', message: `prompt is too long: ${said}` },
    })
  }
})

test.each([
  'prompt is too long, reduce it',
  'Prompt is too long: 9 tokens > 8',
  'prompt is too long: 9 tokens > 8',
])(
  'a message for a messages client begins with exactly the words for a context that is too long: %s',
  async (said) => {
    const body = JSON.stringify({ error: { message: said, type: 'invalid_request_error', code: null } })
    fixture.upstream.script('alone', { kind: 'status', status: 400, body })
    const words = 'prompt is too long: '
    expect(JSON.parse((await askClaude('alone')).text)).toMatchObject({
      error: { type: 'invalid_request_error', message: said.startsWith(words) ? said : words + said },
    })
  },
)

/** Bodies with which providers refuse a request that is too long, without OpenAI's code; by the lane that sends them. */
const TOO_LONG: readonly (readonly [lane: string, body: object])[] = [
  ...[
    "You passed 9000 input tokens and requested 0 output tokens. However, the model's context length is only 8192 tokens",
    'The decoder prompt (length 9000) is longer than the maximum model length of 8192.',
    "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
    "Requested token count exceeds the model's maximum context length of 8192 tokens.",
    'Input validation error: `inputs` must have less than 8192 tokens. Given: 9000',
    'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000',
    'request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it',
    'Trying to keep the first 9000 tokens when context the overflows.',
    'prompt too long; exceeded max context length by 808 tokens',
    'The prompt is too long: 9000, model maximum context length: 8192',
    'Please reduce the length of the messages or completion.',
    'Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)',
    'invalid params, context window exceeds limit (2013)',
    "This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens.",
    'Your input exceeds the context window of this model. Please adjust your input and try again.',
  ].map((message) => ['alone', { error: { message, type: 'invalid_request_error', code: null } }] as const),
  ['alone', { error: { code: '1261', message: 'Prompt exceeds max length' } }],
  ['alone', { error: { code: 400, type: 'exceed_context_size_error', message: WORDS } }],
  [
    'claude',
    { type: 'error', error: { type: 'invalid_request_error', message: 'prompt is too long: 9 tokens > 8' } },
  ],
  [
    'google',
    {
      error: {
        code: 400,
        status: 'INVALID_ARGUMENT',
        message: 'The input token count (9) exceeds the maximum number of tokens allowed (8).',
      },
    },
  ],
  ['codex', { error: { message: WORDS, type: 'invalid_request_error', code: 'context_length_exceeded' } }],
]

test.each(TOO_LONG)('the words of each server for that are known: %s %j', async (lane, body) => {
  fixture.upstream.script(lane, { kind: 'status', status: 400, body: JSON.stringify(body) })
  expect(await asks('responses', lane, false)).toMatchObject({
    error: { status: 400, code: 'context_length_exceeded' },
  })
})

describe('Codex, which shortens a conversation only after an event', () => {
  const askCodex = (model: string, stream = true): Promise<FullResponse> =>
    fixture.chat(
      'ann',
      { model, input: 'hi', stream },
      { path: '/v1/responses', headers: { originator: 'codex_cli_rs' } },
    )
  const failedEvent = {
    type: 'response.failed',
    response: { status: 'failed', error: { code: 'context_length_exceeded', message: expect.any(String) } },
  }
  const eventsOf = (text: string): unknown[] =>
    [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))

  const first = TOO_LONG.filter(([lane], at) => TOO_LONG.findIndex(([one]) => one === lane) === at)
  test.each(first)('gets it for a request that is too long: %s', async (lane, body) => {
    fixture.upstream.script(lane, { kind: 'status', status: 400, body: JSON.stringify(body) })
    const answer = await askCodex(lane)
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/event-stream'])
    const events = eventsOf(answer.text)
    expect([events[0], events.at(-1)]).toMatchObject([{ type: 'response.created' }, failedEvent])
    expect(await rowOf(answer)).toMatchObject({ quota: 0, error_status: 200 })
    const whole = await askCodex(lane, false)
    expect([whole.status, whole.json().error.code]).toEqual([400, 'context_length_exceeded'])
  })

  test('gets it for a stream of its own protocol that begins with it', async () => {
    const error = { code: 'context_length_exceeded', message: WORDS }
    const data = JSON.stringify({ type: 'response.failed', response: { status: 'failed', error } })
    fixture.upstream.script('codex', sendsFrames([`event: response.failed\ndata: ${data}\n\n`]))
    const answer = await askCodex('codex')
    expect(answer.status).toBe(200)
    expect(eventsOf(answer.text).at(-1)).toMatchObject(failedEvent)
  })

  test('gets other refusals as a status', async () => {
    const body = JSON.stringify({ error: { message: WORDS, type: 'invalid_request_error' } })
    fixture.upstream.script('codex', { kind: 'status', status: 400, body })
    expect((await askCodex('codex')).status).toBe(400)
  })
})

test.each([
  [403, { error: { message: 'Your input was flagged', code: 403, metadata: { reasons: ['x'] } } }, 403],
  [402, { error: { message: WORDS, code: 'content_filter' } }, 403],
  [451, { error: { message: WORDS } }, 451],
])('a %i about the request keeps its words', async (status, body, expected) => {
  fixture.upstream.script('alone', { kind: 'status', status, body: JSON.stringify(body) })
  const answer = await fixture.chat('ann', ask('alone'))
  expect(answer.status).toBe(expected)
  expect(answer.json().error.message).toBe(body.error.message)
})

test.each([405, 501])('a %i keeps its status and words if no other channel answers', async (status) => {
  const body = JSON.stringify({ error: { code: status, message: WORDS, type: 'not_supported_error' } })
  fixture.upstream.script('alone', { kind: 'status', status, body })
  const answer = await fixture.chat('ann', { model: 'alone', input: 'hi' }, { path: '/v1/embeddings' })
  expect([answer.status, answer.headers['x-should-retry']]).toEqual([status, 'false'])
  expect(answer.text).toContain(WORDS)
  fixture.upstream.script('first', { kind: 'status', status, body })
  expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
})

test('a refusal of the gateway has its code for messages clients too', async () => {
  const tools = [{ type: 'unheard_of_20990101', name: 'unheard_of' }]
  const answer = await askClaude('claude', { tools })
  expect(answer.json().error).toMatchObject({ type: 'gateway_error', code: 'tool_not_priced' })
})

test.each([{ stop_reason: 'END' }, { matched_stop: 'END' }])(
  'the text that stopped a model is the stop_sequence of messages: %j',
  async (more) => {
    const answer: EndedAnswer = { text: 'said', reason: 'stop', more }
    fixture.upstream.script('alone', sendsJson(wholeAnswer('chat', answer)))
    expect(await asks('messages', 'alone', false)).toEqual({
      text: 'said',
      reason: 'stop_sequence',
      sequence: 'END',
    })
    fixture.upstream.script('alone', sendsFrames(streamedAnswer('chat', answer)))
    expect(await asks('messages', 'alone', true)).toEqual({
      text: 'said',
      reason: 'stop_sequence',
      sequence: 'END',
    })
  },
)

test('a token that stopped a model is not a stop_sequence', async () => {
  const answer: EndedAnswer = { text: 'said', reason: 'stop', more: { stop_reason: 128_009 } }
  fixture.upstream.script('alone', sendsJson(wholeAnswer('chat', answer)))
  expect(await asks('messages', 'alone', false)).toMatchObject({ reason: 'end_turn', sequence: null })
})

test('the rerank answers of text-embeddings-inference are read', async () => {
  const body = '[{"index":2,"score":0.25},{"index":0,"score":0.75,"text":"zero"}]'
  fixture.upstream.script('tei', sendsJson(body))
  const answer = ranked(await rerank(fixture, 'ann', askRerank('tei')))
  expect(answer.results).toEqual([
    { index: 0, relevance_score: 0.75 },
    { index: 2, relevance_score: 0.25 },
  ])
})

/** Requests of endpoints whose answers are no conversations. */
const OTHERS = [
  ['/v1/embeddings', { model: 'alone', input: 'hi' }],
  ['/v1/moderations', { model: 'alone', input: 'hi' }],
  ['/v1/images/generations', { model: 'alone', prompt: 'hi' }],
  ['/v1/audio/speech', { model: 'alone', input: 'hi', voice: 'a' }],
  ['/v1/rerank', askRerank('tei')],
  ['/v1/completions', { model: 'alone', prompt: 'hi' }],
] as const

test.each(OTHERS)('an error in a 200 has its status and words at %s', async (path, body) => {
  const error = sendsJson(JSON.stringify({ error: { code: 429, message: WORDS } }))
  for (const lane of ['alone', 'tei']) fixture.upstream.script(lane, error)
  const answer = await fixture.chat('ann', body, { path })
  expect([answer.status, answer.json().error.message]).toEqual([429, WORDS])
})

test('a whole answer that comes in either form costs the same', async () => {
  const answer: EndedAnswer = { text: 'said', reason: 'stop' }
  for (const behaviour of [
    sendsJson(completionText('said', usageText(10, 5)), 'text/event-stream'),
    sendsFrames(streamedAnswer('chat', answer), 'application/json'),
  ]) {
    fixture.upstream.script('alone', behaviour)
    for (const asked of [ask('alone'), askStream('alone')])
      expect(await rowOf(await fixture.chat('ann', asked))).toMatchObject({ quota: GOOD_CHARGE })
  }
})

describe('images in the other form', () => {
  const USAGE = { input_tokens: 3, output_tokens: 4, total_tokens: 7 }
  const body = JSON.stringify({ created: 7, data: [{ b64_json: 'QUJD' }], size: '1x1', usage: USAGE })
  const event = {
    type: 'image_generation.completed',
    b64_json: 'QUJD',
    created_at: 7,
    size: '1x1',
    usage: USAGE,
  }
  const frames = [`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`]

  test.each([sendsJson(body), sendsFrames(frames)])(
    'are sent in the form that was requested',
    async (behaviour) => {
      fixture.upstream.script('alone', behaviour)
      const request = { model: 'alone', prompt: 'hi' }
      const whole = await fixture.chat('ann', request, { path: '/v1/images/generations' })
      expect(JSON.parse(whole.text)).toEqual(JSON.parse(body))
      const streamed = await fixture.chat(
        'ann',
        { ...request, stream: true },
        { path: '/v1/images/generations' },
      )
      const [, data = ''] = /^event: image_generation\.completed\ndata: (.*)\n\n$/.exec(streamed.text) ?? []
      expect(JSON.parse(data)).toEqual(event)
      for (const answer of [whole, streamed])
        expect(await rowOf(answer)).toMatchObject({ prompt_tokens: 3, completion_tokens: 4 })
    },
  )

  test('several images in events are collected with what each says of itself, and charged for the usage of all', async () => {
    const details = { text_tokens: 1, image_tokens: 2 }
    const events = ['a cat', 'a dog'].map((revised_prompt) => ({
      ...event,
      revised_prompt,
      usage: { ...USAGE, input_tokens_details: details },
    }))
    fixture.upstream.script(
      'alone',
      sendsFrames(events.map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`)),
    )
    const answer = await fixture.chat(
      'ann',
      { model: 'alone', prompt: 'hi', n: 2 },
      { path: '/v1/images/generations' },
    )
    expect(JSON.parse(answer.text)).toEqual({
      created: 7,
      size: '1x1',
      data: [
        { b64_json: 'QUJD', revised_prompt: 'a cat' },
        { b64_json: 'QUJD', revised_prompt: 'a dog' },
      ],
      usage: {
        input_tokens: 6,
        output_tokens: 8,
        total_tokens: 14,
        input_tokens_details: { text_tokens: 2, image_tokens: 4 },
      },
    })
    expect(await rowOf(answer)).toMatchObject({ prompt_tokens: 6, completion_tokens: 8 })
  })
})
