import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { type AlertReceiver, startAlertReceiver } from '../fixtures/alert-receiver.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

/** Ten times the context of gpt-4o in the price data, and of the output that is assumed for any model. */
const MOST_OF_KNOWN = 10 * (128_000 + 65_536)
const MOST_OF_UNKNOWN = 10_000_000
const A_BILLION = 1_000_000_000

let fixture: Fixture
let told: AlertReceiver
beforeAll(async () => {
  told = await startAlertReceiver()
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, hold_tokens: 16 },
    models: Object.fromEntries(
      ['c', 'm', 'r', 'g', 'e', 'gpt-4o', 'last'].map((name) => [
        name,
        { price: { ...PLAIN_PRICE, tools: {} } },
      ]),
    ),
    channels: [
      channel('c', upstream.baseUrl('c'), { models: ['c', 'gpt-4o', 'last'] }),
      channel('m', upstream.baseUrl('m'), { protocol: 'messages' }),
      channel('r', upstream.baseUrl('r'), { protocol: 'responses' }),
      channel('g', upstream.baseUrl('g'), { protocol: 'gemini' }),
      channel('e', upstream.baseUrl('e')),
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('poor', { remain_quota: 1 })]), ADMIN_USER],
    alerts: [told.declared('usage.implausible')],
  }))
})
afterAll(async () => {
  await fixture?.close()
  await told?.stop()
})

type Client = 'chat' | 'messages' | 'responses' | 'gemini' | 'embeddings'

const HI = [{ role: 'user', content: 'hi' }]
const CLIENTS: Readonly<
  Record<Client, (key: string, fields?: object, stream?: boolean) => Promise<FullResponse>>
> = {
  chat: (key, fields, stream = false) =>
    fixture.chat(key, { model: 'c', messages: HI, max_tokens: 16, stream, ...fields }),
  messages: (key, fields, stream = false) =>
    fixture.chat(
      key,
      { model: 'm', max_tokens: 16, messages: HI, stream, ...fields },
      { path: '/v1/messages' },
    ),
  responses: (key, fields, stream = false) =>
    fixture.chat(
      key,
      { model: 'r', input: 'hi', max_output_tokens: 16, stream, ...fields },
      { path: '/v1/responses' },
    ),
  gemini: (key, fields, stream = false) =>
    fixture.chat(
      key,
      { contents: [{ parts: [{ text: 'hi' }] }], generationConfig: { maxOutputTokens: 16 }, ...fields },
      { path: `/v1beta/models/g:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}` },
    ),
  embeddings: (key) => fixture.chat(key, { model: 'e', input: 'hi' }, { path: '/v1/embeddings' }),
}
const LANES: Readonly<Record<Client, string>> = {
  chat: 'c',
  messages: 'm',
  responses: 'r',
  gemini: 'g',
  embeddings: 'e',
}

const SAID = {
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text: 'said', annotations: [] }],
}
const response = (prompt: number, more: object = {}) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 7,
  status: 'completed',
  model: 'r',
  output: [SAID],
  usage: { input_tokens: prompt, output_tokens: 1, total_tokens: prompt + 1 },
  ...more,
})
const message = (prompt: number, usage: object = {}) => ({
  id: 'm1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'said' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: prompt, output_tokens: 1, ...usage },
})
const ANSWERS: Readonly<Record<Client, (prompt: number) => object>> = {
  chat: (prompt) => ({
    id: 'c1',
    object: 'chat.completion',
    created: 7,
    model: 'c',
    choices: [{ index: 0, message: { role: 'assistant', content: 'said' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: prompt, completion_tokens: 1, total_tokens: prompt + 1 },
  }),
  messages: message,
  responses: response,
  gemini: (prompt) => ({
    candidates: [{ content: { role: 'model', parts: [{ text: 'said' }] }, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: prompt, candidatesTokenCount: 1, totalTokenCount: prompt + 1 },
  }),
  embeddings: (prompt) => ({
    object: 'list',
    data: [{ object: 'embedding', index: 0, embedding: [0.5] }],
    model: 'e',
    usage: { prompt_tokens: prompt, total_tokens: prompt },
  }),
}

const event = ({ type, ...rest }: Readonly<Record<string, unknown>> & { readonly type?: string }): string =>
  `${type ? `event: ${type}\n` : ''}data: ${JSON.stringify({ ...(type && { type }), ...rest })}\n\n`
const STREAMS: Readonly<Record<Exclude<Client, 'embeddings'>, (prompt: number) => readonly string[]>> = {
  chat: (prompt) => {
    const { choices: _, object: __, ...rest } = ANSWERS.chat(prompt) as Record<string, unknown>
    const chunk = { ...rest, object: 'chat.completion.chunk', usage: null }
    return [
      event({
        ...chunk,
        choices: [{ index: 0, delta: { role: 'assistant', content: 'said' }, finish_reason: 'stop' }],
      }),
      event({ ...chunk, choices: [], usage: rest['usage'] }),
      'data: [DONE]\n\n',
    ]
  },
  messages: (prompt) => {
    const { usage } = message(prompt)
    return [
      { type: 'message_start', message: { ...message(prompt), content: [], stop_reason: null } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'said' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage },
      { type: 'message_stop' },
    ].map((one) => event(one))
  },
  responses: (prompt) =>
    [
      {
        type: 'response.created',
        response: { ...response(prompt), status: 'in_progress', output: [], usage: null },
      },
      { type: 'response.output_item.added', output_index: 0, item: SAID },
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'said' },
      { type: 'response.output_item.done', output_index: 0, item: SAID },
      { type: 'response.completed', response: response(prompt) },
    ].map((one, at) => event({ ...one, sequence_number: at })),
  gemini: (prompt) => [event({ ...ANSWERS.gemini(prompt) })],
}

const json = (value: object) => ({ kind: 'whole', body: JSON.stringify(value) }) as const

interface Row {
  readonly quota: number
  readonly reason: string
  readonly note: string
  readonly prompt_tokens: number
  readonly cost: readonly unknown[] | null
}

async function row({ headers, status, text }: FullResponse): Promise<Row> {
  expect(status, text).toBe(200)
  const id = String(headers['x-request-id'])
  return (await manage<Row>(fixture.gateway.url, ADMIN, `GET /api/log/${id}`)).data
}

/** The quota units that a call holds, as the refusal of a poor key states it. */
async function held(client: Client, fields: object = {}, stream = false): Promise<number> {
  const { status, text } = await CLIENTS[client]('poor', fields, stream)
  expect(status, text).toBe(403)
  return Number(/(\d+) are needed/.exec(text)?.[1])
}

const AT_HOLD = { note: 'usage_implausible', reason: 'estimated', cost: null }

describe.each(['chat', 'messages', 'responses', 'gemini', 'embeddings'] as const)(
  'a usage of %s that is not plausible',
  (client) => {
    const lane = LANES[client]
    test('of a whole answer is charged as what the call held', async () => {
      fixture.upstream.script(lane, json(ANSWERS[client](A_BILLION)))
      const charged = await row(await CLIENTS[client]('ann'))
      expect(charged).toMatchObject({ ...AT_HOLD, quota: await held(client) })
      expect(charged.prompt_tokens).toBeLessThan(100)
    })

    test('up to the limit is charged as it is reported', async () => {
      fixture.upstream.script(lane, json(ANSWERS[client](MOST_OF_UNKNOWN - 1)))
      const charged = await row(await CLIENTS[client]('ann'))
      expect(charged).toMatchObject({ note: '', reason: 'complete', prompt_tokens: MOST_OF_UNKNOWN - 1 })
    })
  },
)

test.each(['chat', 'messages', 'responses', 'gemini'] as const)(
  'a usage of %s that is not plausible, at the end of a stream, is charged as what the call held',
  async (client) => {
    const frames = STREAMS[client](A_BILLION)
    fixture.upstream.script(LANES[client], { kind: 'stream', frames, ending: 'no done' })
    const charged = await row(await CLIENTS[client]('ann', {}, true))
    expect(charged).toMatchObject({ ...AT_HOLD, quota: await held(client, {}, true) })
  },
)

test('what is plausible for a model of the price data follows from its context', async () => {
  for (const [prompt, note] of [
    [MOST_OF_KNOWN - 1, ''],
    [MOST_OF_KNOWN, 'usage_implausible'],
  ] as const) {
    fixture.upstream.script('c', json(ANSWERS.chat(prompt)))
    expect(await row(await CLIENTS.chat('ann', { model: 'gpt-4o' }))).toMatchObject({ note })
  }
})

describe('uses of a tool', () => {
  const search = { tools: [{ type: 'web_search' }] }
  const searching = (uses: number): object =>
    response(9, { tool_usage: { web_search: { num_requests: uses } } })
  test.each<[string, object, number]>([
    ['ten times the maximum of a request', { ...search, max_tool_calls: 2 }, 20],
    ['1,000 where a request states no maximum', search, 1_000],
    ['1,000 where a request offers no tool', {}, 1_000],
  ])('are believed up to %s', async (_, fields, most) => {
    fixture.upstream.script('r', json(searching(most)))
    expect(await row(await CLIENTS.responses('ann', fields))).toMatchObject({ note: '', reason: 'complete' })
    fixture.upstream.script('r', json(searching(most + 1)))
    const charged = await row(await CLIENTS.responses('ann', fields))
    expect(charged).toMatchObject({ ...AT_HOLD, quota: await held('responses', fields) })
  })

  test('of a messages request are believed up to ten times its max_uses', async () => {
    const tools = [{ type: 'web_search_20250305', name: 'web_search', max_uses: 3 }]
    for (const [uses, note] of [
      [30, ''],
      [31, 'usage_implausible'],
    ] as const) {
      fixture.upstream.script('m', json(message(9, { server_tool_use: { web_search_requests: uses } })))
      expect(await row(await CLIENTS.messages('ann', { tools }))).toMatchObject({ note })
    }
  })

  test('that the tokens of images make implausible are not believed', async () => {
    const image_gen = {
      input_tokens: A_BILLION,
      input_tokens_details: { text_tokens: A_BILLION, image_tokens: 0 },
      output_tokens: 1,
    }
    const output = [{ id: 'i', type: 'image_generation_call', status: 'completed' }, SAID]
    fixture.upstream.script('r', json(response(9, { output, tool_usage: { image_gen } })))
    expect(await row(await CLIENTS.responses('ann', {}))).toMatchObject(AT_HOLD)
  })
})

test('the prompt of the next turn is not bounded by a usage that is not believed', async () => {
  const history = [...HI, { role: 'assistant', content: 'said' }, { role: 'user', content: 'more' }]
  const before = await held('chat', { messages: history })
  fixture.upstream.script('c', json(ANSWERS.chat(A_BILLION)))
  expect(await row(await CLIENTS.chat('ann'))).toMatchObject(AT_HOLD)
  expect(await held('chat', { messages: history })).toBe(before)
})

test('a response in the background with a usage that is not plausible is charged as what it held', async () => {
  const background = { background: true }
  fixture.upstream.script(
    'r',
    json(response(9, { status: 'queued', usage: null, output: [] })),
    json(response(A_BILLION)),
  )
  const begun = await CLIENTS.responses('ann', background)
  await fixture.chat('ann', '', { path: `/v1/responses/${begun.json().id}`, method: 'GET' })
  expect(await row(begun)).toMatchObject({ ...AT_HOLD, quota: await held('responses', background) })
})

test('an alert names channel and model of usages that are not plausible, once for each', async () => {
  const names = ['c', 'm', 'r', 'g', 'e'].map((name) => ({ model: name, channel: name }))
  const expected = [...names, { model: 'gpt-4o', channel: 'c' }]
  await told.atLeast(expected.length)
  fixture.upstream.script('c', json(ANSWERS.chat(A_BILLION)))
  await row(await CLIENTS.chat('ann'))
  // What is told later of another model is the only new alert.
  await row(await CLIENTS.chat('ann', { model: 'last' }))
  expected.push({ model: 'last', channel: 'c' })
  await told.atLeast(expected.length)
  expect(told.received).toHaveLength(expected.length)
  for (const data of expected)
    expect(told.received).toContainEqual(expect.objectContaining({ type: 'usage.implausible', data }))
})
