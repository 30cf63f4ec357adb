import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Whole } from '../fixtures/behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'

/** Quota units a token: 1 for input, 4 for output, 1.5 for input written to a cache; a search is 1,000. */
const price = { input: 2, output: 8, cache_read: 0.5, cache_write_5m: 3, web_search: 0.002 }
const SEARCH = 1_000
const MODELS = ['plain', 'allowing', 'storeless'] as const

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: Object.fromEntries(MODELS.map((name) => [name, { price }])),
    channels: MODELS.map((name) =>
      channel(name, upstream.baseUrl(name), {
        protocol: 'responses',
        ...(name === 'allowing' && { allow: ['service_tier', 'safety_identifier'] }),
        ...(name === 'storeless' && { disable_store: true }),
      }),
    ),
    users: [ROOT, user(2, 'ann', [token('ann'), token('poor', { remain_quota: 4_000 })])],
  }))
})
afterAll(() => fixture?.close())

const CLIENTS = {
  responses: { path: '/v1/responses', body: { input: 'hi' } },
  chat: { path: '/v1/chat/completions', body: { messages: [{ role: 'user', content: 'hi' }] } },
  messages: {
    path: '/v1/messages',
    body: { max_tokens: 9_000, messages: [{ role: 'user', content: 'hi' }] },
  },
}
type Client = keyof typeof CLIENTS
const EVERY = ['responses', 'chat', 'messages'] as const

const post = (client: Client, fields: object = {}, key = 'ann'): Promise<FullResponse> =>
  fixture.chat(key, { model: 'plain', ...CLIENTS[client].body, ...fields }, { path: CLIENTS[client].path })

function charged({ headers, status, text }: FullResponse): number | undefined {
  expect(status, text).toBe(200)
  return databaseOf(fixture.gateway.dataDir).usageOf(String(headers['x-request-id']))?.quota
}

const usage = (more: object = {}): object => ({
  input_tokens: 100,
  output_tokens: 10,
  total_tokens: 110,
  ...more,
})
const TOKENS = 100 + 10 * 4
const search = (type: string): object => ({
  id: 'ws_1',
  type: 'web_search_call',
  status: 'completed',
  action: { type },
})
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text: 'said', annotations: [] }],
}
const SEARCHED = [search('search'), search('open_page'), { ...search('search'), id: 'ws_2' }, message]

const responseOf = (fields: object): object => ({
  id: 'resp_1',
  object: 'response',
  created_at: 7,
  status: 'completed',
  model: 'm',
  output: SEARCHED,
  usage: usage(),
  ...fields,
})
const whole = (fields: object): Whole => ({ kind: 'whole', body: JSON.stringify(responseOf(fields)) })

/** The stream of a response; where `isBare`, the last event has no items. */
function stream(fields: object, isBare: boolean): string[] {
  const response = responseOf(fields) as { readonly output: readonly object[] }
  const events: object[] = [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [], usage: null } },
    ...response.output.flatMap((item, at) => [
      { type: 'response.output_item.added', output_index: at, item },
      { type: 'response.output_item.done', output_index: at, item },
    ]),
    { type: 'response.completed', response: isBare ? { ...response, output: [] } : response },
  ]
  return events.map((event, at) => `data: ${JSON.stringify({ ...event, sequence_number: at })}\n\n`)
}

describe('searches that the provider makes', () => {
  test.each(EVERY)(
    'web searches by the provider are charged by the number in tool_usage, for a client of %s',
    async (client) => {
      fixture.upstream.script('plain', whole({ tool_usage: { web_search: { num_requests: 5 } } }))
      expect(charged(await post(client))).toBe(TOKENS + 5 * SEARCH)
    },
  )

  test.each(EVERY)(
    'web searches without tool_usage are charged by the search items of the answer, without opened pages, for a client of %s',
    async (client) => {
      fixture.upstream.script('plain', whole({}))
      expect(charged(await post(client))).toBe(TOKENS + 2 * SEARCH)
    },
  )

  test.each(EVERY.flatMap((client) => [[client, false] as const, [client, true] as const]))(
    'web searches in a stream are charged for a client of %s, whose last event has no items: %s',
    async (client, isBare) => {
      fixture.upstream.script('plain', { kind: 'stream', frames: stream({}, isBare), ending: 'no done' })
      expect(charged(await post(client, { stream: true }))).toBe(TOKENS + 2 * SEARCH)
    },
  )

  test('the hold of a call covers web searches by the provider where the request allows them', async () => {
    fixture.upstream.script('plain', wholeResponse({ text: 'said' }))
    const fields = { max_output_tokens: 16 }
    expect((await post('responses', fields, 'poor')).status).toBe(200)
    const searching = await post('responses', { ...fields, tools: [{ type: 'web_search' }] }, 'poor')
    expect(searching.status).toBe(403)
    expect(searching.json().error.code).toBe('insufficient_quota')
  })
})

test.each(EVERY)(
  'tokens written to a prompt cache are charged at their own price, for a client of %s',
  async (client) => {
    const input_tokens_details = { cached_tokens: 40, cache_write_tokens: 20 }
    fixture.upstream.script('plain', whole({ output: [message], usage: usage({ input_tokens_details }) }))
    expect(charged(await post(client))).toBe(40 + 40 / 4 + 20 * 1.5 + 40)
  },
)

describe('a request converted to responses', () => {
  const sent = async (
    model: (typeof MODELS)[number],
    client: Client,
    fields: object,
  ): Promise<Record<string, unknown>> => {
    fixture.upstream.script(model, wholeResponse({ text: 'said' }))
    expect((await post(client, { model, ...fields })).status).toBe(200)
    return JSON.parse(fixture.upstream.only(model).text)
  }

  test('a request converted to responses has store: false unless the client sets it and the channel allows it', async () => {
    expect(await sent('plain', 'messages', {})).toMatchObject({ store: false })
    expect(await sent('plain', 'chat', {})).toMatchObject({ store: false })
    expect(await sent('plain', 'chat', { store: true })).toMatchObject({ store: true })
    expect(await sent('storeless', 'chat', { store: true })).toMatchObject({ store: false })
    expect(await sent('storeless', 'responses', { store: true })).toMatchObject({ store: false })
  })

  test('a request converted to responses includes encrypted reasoning where it requests thinking', async () => {
    const include = ['reasoning.encrypted_content']
    expect(await sent('plain', 'chat', { reasoning_effort: 'high' })).toMatchObject({ include })
    const thinking = { type: 'enabled', budget_tokens: 4_096 }
    expect(await sent('plain', 'messages', { thinking })).toMatchObject({ include })
    expect(await sent('plain', 'chat', {})).not.toHaveProperty('include')
    expect(await sent('plain', 'chat', { reasoning_effort: 'none' })).not.toHaveProperty('include')
  })

  const gated = { service_tier: 'priority', safety_identifier: 'someone' }
  test('a request converted to responses has fields such as service_tier only where the channel allows them', async () => {
    const plain = await sent('plain', 'chat', gated)
    for (const field of Object.keys(gated)) expect(plain).not.toHaveProperty(field)
    expect(await sent('allowing', 'chat', gated)).toMatchObject(gated)
    const obfuscated = { stream_options: { include_obfuscation: true, include_usage: true } }
    expect(await sent('plain', 'chat', obfuscated)).not.toHaveProperty('stream_options')
  })
})
