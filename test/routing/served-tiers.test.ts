import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { geminiUsage, streamedGemini, wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { streamedResponse, wholeResponse } from '../fixtures/responses-behaviour.ts'

/** Quota units a token: 1 for input, 4 for output; half for flex, thrice for fast, 1.1 times in `us`. */
const price = {
  input: 2,
  output: 8,
  request: 0.0001,
  service: { flex: 0.5, priority: 3, ultrafast: { input: 20, output: 40 } },
  regions: { us: 1.1, eu: 1 },
}
/** Quota units of a call of 100 and 10 tokens, apart from the price of a request. */
const TOKENS = 100 + 10 * 4
const REQUEST = 50

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, hold_tokens: 16 },
    models: Object.fromEntries(['chat', 'messages', 'responses', 'gemini'].map((name) => [name, { price }])),
    channels: [
      channel('chat', upstream.baseUrl('chat'), { allow: ['service_tier'] }),
      channel('messages', upstream.baseUrl('messages'), { protocol: 'messages' }),
      channel('responses', upstream.baseUrl('responses'), { protocol: 'responses' }),
      channel('gemini', upstream.baseUrl('gemini'), { protocol: 'gemini' }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('poor', { remain_quota: 450 })]), ADMIN_USER],
  }))
})
afterAll(() => fixture?.close())

interface Row {
  readonly quota: number
  readonly service_tier: string
  readonly requested_service_tier: string
  readonly region: string
  readonly price_incomplete: boolean
  readonly cost: readonly { kind: string; count: number; price_usd: string; quota: string }[] | null
  readonly cache_write_5m_tokens: number
  readonly cache_write_30m_tokens: number
  readonly cache_write_12h_tokens: number
}

/** The row of a call, whose cost lines add up to its charge. */
async function row({ headers, status, text }: FullResponse): Promise<Row> {
  expect(status, text).toBe(200)
  const { data } = await manage<Row>(
    fixture.gateway.url,
    ADMIN,
    `GET /api/log/${String(headers['x-request-id'])}`,
  )
  const sum = (data.cost ?? []).reduce((total, { quota }) => total + Number(quota), 0)
  expect(Math.round(sum)).toBe(data.quota)
  return data
}

const CLIENTS = {
  chat: { path: '/v1/chat/completions', body: { messages: [{ role: 'user', content: 'hi' }] } },
  messages: {
    path: '/v1/messages',
    body: { max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
  },
  responses: { path: '/v1/responses', body: { input: 'hi' } },
} as const
type Client = keyof typeof CLIENTS
type Upstream = Client | 'gemini'

const post = (client: Client, model: string, fields: object = {}, key = 'ann'): Promise<FullResponse> =>
  fixture.chat(key, { model, ...CLIENTS[client].body, ...fields }, { path: CLIENTS[client].path })

/** The usage of each dialect, and the place where its answers state the tier. */
const CHAT_USAGE = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 }
const RESPONSES_USAGE = { input_tokens: 100, output_tokens: 10, total_tokens: 110 }

function chat(more: object, usage: object = CHAT_USAGE) {
  const choice = { index: 0, message: { role: 'assistant', content: 'said' }, finish_reason: 'stop' }
  const head = { id: 'c', object: 'chat.completion', created: 7, model: 'm' }
  return { kind: 'whole', body: JSON.stringify({ ...head, choices: [choice], usage, ...more }) } as const
}

function chatStream(more: object) {
  const frame = (fields: object) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 7, model: 'm', ...fields })}\n\n`
  return {
    kind: 'stream',
    frames: [
      frame({ service_tier: 'auto', choices: [{ index: 0, delta: { content: 'said' } }] }),
      frame({ ...more, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
      frame({ ...more, choices: [], usage: CHAT_USAGE }),
      'data: [DONE]\n\n',
    ],
    ending: 'no done',
  } as const
}

const responsesUsage = (tier: string): string => `${JSON.stringify(RESPONSES_USAGE)},"service_tier":"${tier}"`
const counts = (more: object) => ({ input_tokens: 100, output_tokens: 10, ...more })

/** Answers of each dialect that state a tier, whole and streamed. */
const ANSWERS = {
  chat: (tier: string) => [chat({ service_tier: tier }), chatStream({ service_tier: tier })],
  messages: (tier: string) => {
    const stated = counts(
      tier === 'fast' ? { service_tier: 'standard', speed: 'fast' } : { service_tier: tier },
    )
    return [
      wholeMessage([{ text: 'said' }], { counts: stated }),
      streamedMessage([{ text: 'said' }], { counts: stated }),
    ]
  },
  responses: (tier: string) => [
    wholeResponse({ text: 'said', usage: responsesUsage(tier) }),
    streamedResponse({ text: 'said', usage: responsesUsage(tier) }),
  ],
  gemini: (tier: string) => {
    const usage = geminiUsage(100, 10, { serviceTier: tier })
    return [wholeGemini({ text: 'said', usage }), streamedGemini({ text: 'said', usage })]
  },
} as const satisfies Readonly<Record<Upstream, unknown>>

describe('the tier that was served', () => {
  const EVERY = (['chat', 'messages', 'responses'] as const).flatMap((client) =>
    (['chat', 'messages', 'responses', 'gemini'] as const).map((upstream) => [client, upstream] as const),
  )

  test.each(EVERY)(
    'a call from %s to %s is charged by the service tier that its answer states, whole and streamed',
    async (client, upstream) => {
      for (const [stated, name, factor] of [
        ['flex', 'flex', 0.5],
        [upstream === 'messages' ? 'fast' : 'priority', 'fast', 3],
        ['standard', 'standard', 1],
      ] as const) {
        const [whole, streamed] = ANSWERS[upstream](stated)
        fixture.upstream.script(upstream, whole as never)
        const expected = { quota: TOKENS * factor + REQUEST, service_tier: name, price_incomplete: false }
        expect(await row(await post(client, upstream))).toMatchObject(expected)
        fixture.upstream.script(upstream, streamed as never)
        expect(await row(await post(client, upstream, { stream: true }))).toMatchObject(expected)
      }
    },
  )

  test.each(['messages', 'responses', 'gemini'] as const)(
    "a chat client gets the tier that an upstream of %s states as service_tier, whole and streamed, but none of a messages upstream's",
    async (upstream) => {
      for (const [stated, written] of [
        ['flex', 'flex'],
        ['priority', 'priority'],
        ['standard', 'default'],
      ] as const) {
        const expected = upstream === 'messages' ? undefined : written
        const [whole, streamed] = ANSWERS[upstream](stated)
        fixture.upstream.script(upstream, whole as never)
        expect(JSON.parse((await post('chat', upstream)).text).service_tier).toBe(expected)
        fixture.upstream.script(upstream, streamed as never)
        const stream_options = { include_usage: true }
        const answer = await post('chat', upstream, { stream: true, stream_options })
        const lines = answer.text.split('\n\n').filter((line) => line.startsWith('data: {'))
        const chunks = lines.map((line) => JSON.parse(line.slice('data: '.length)))
        expect(chunks.slice(-2).map(({ service_tier }) => service_tier)).toEqual([expected, expected])
      }
    },
  )

  test('a service tier may have its own input and output prices, from which its price of cached tokens is derived', async () => {
    const usage = { ...CHAT_USAGE, prompt_tokens_details: { cached_tokens: 40 } }
    fixture.upstream.script('chat', chat({ service_tier: 'ultrafast' }, usage))
    // 60 × 10 + 40 × 1 + 10 × 20
    const { cost, quota } = await row(await post('chat', 'chat'))
    expect(quota).toBe(600 + 40 + 200 + REQUEST)
    expect(cost).toMatchObject([
      { kind: 'input', count: 60, price_usd: '20' },
      { kind: 'cached', count: 40, price_usd: '2' },
      { kind: 'output', count: 10, price_usd: '40' },
      { kind: 'request', count: 1 },
    ])
  })

  test('an answer without a service tier is charged by the requested one; auto and none count as standard', async () => {
    for (const [sent, name, requested, factor] of [
      ['priority', 'fast', 'fast', 3],
      ['flex', 'flex', 'flex', 0.5],
      ['auto', 'standard', 'auto', 1],
      [undefined, 'standard', '', 1],
    ] as const) {
      fixture.upstream.script('chat', chat({}))
      expect(await row(await post('chat', 'chat', sent ? { service_tier: sent } : {}))).toMatchObject({
        quota: TOKENS * factor + REQUEST,
        service_tier: name,
        requested_service_tier: requested,
        price_incomplete: false,
      })
    }
  })

  test('a service tier that the channel does not allow is in the usage row as requested, but not charged', async () => {
    fixture.upstream.script(
      'responses',
      wholeResponse({ text: 'said', usage: JSON.stringify(RESPONSES_USAGE) }),
    )
    const charged = await row(await post('responses', 'responses', { service_tier: 'priority' }))
    expect(charged).toMatchObject({
      quota: TOKENS + REQUEST,
      service_tier: 'standard',
      requested_service_tier: 'fast',
    })
  })

  test('service_tier priority in an Anthropic answer means reserved capacity, and is charged at the standard price', async () => {
    fixture.upstream.script('messages', ANSWERS.messages('priority')[0] as never)
    expect(await row(await post('messages', 'messages'))).toMatchObject({
      quota: TOKENS + REQUEST,
      service_tier: 'reserved',
      price_incomplete: false,
    })
  })

  test.each([
    ['ON_DEMAND', 'standard', 1],
    ['ON_DEMAND_FLEX', 'flex', 0.5],
    ['ON_DEMAND_PRIORITY', 'fast', 3],
    ['PROVISIONED_THROUGHPUT', 'provisioned', 0],
  ])(
    "Gemini's trafficType %s is charged at the price of the service tier %s",
    async (trafficType, name, factor) => {
      fixture.upstream.script(
        'gemini',
        wholeGemini({ text: 'said', usage: geminiUsage(100, 10, { trafficType }) }),
      )
      expect(await row(await post('chat', 'gemini'))).toMatchObject({
        quota: TOKENS * factor + REQUEST,
        service_tier: name,
        price_incomplete: false,
      })
    },
  )

  test('a served tier without a price is charged at the highest price of the model, and marked in the usage row', async () => {
    fixture.upstream.script('chat', chat({ service_tier: 'hyper' }))
    // 100 × 10 + 10 × 20
    expect(await row(await post('chat', 'chat'))).toMatchObject({
      quota: 1_200 + REQUEST,
      service_tier: 'hyper',
      price_incomplete: true,
    })
  })

  test("Gemini's off-peak tier is charged at the standard price if it has none, and marked in the usage row", async () => {
    const usage = geminiUsage(100, 10, { trafficType: 'ON_DEMAND_OFFPEAK' })
    for (const answer of [wholeGemini({ text: 'said', usage }), streamedGemini({ text: 'said', usage })]) {
      fixture.upstream.script('gemini', answer)
      expect(await row(await post('chat', 'gemini', { stream: answer.kind === 'stream' }))).toMatchObject({
        quota: TOKENS + REQUEST,
        service_tier: 'offpeak',
        price_incomplete: true,
      })
    }
  })

  test('a hold covers the price of the service tier that the request names', async () => {
    fixture.upstream.script('chat', chat({}))
    expect((await post('chat', 'chat', { max_tokens: 10 }, 'poor')).status).toBe(200)
    const refused = await post('chat', 'chat', { max_tokens: 10, service_tier: 'priority' }, 'poor')
    expect(refused.status).toBe(403)
  })
})

describe('the region that was served', () => {
  test('the region that an answer states multiplies the token prices of its service tier', async () => {
    for (const [more, quota, tier] of [
      [{ inference_geo: 'us' }, 154, 'standard'],
      [{ inference_geo: 'us', speed: 'fast' }, 462, 'fast'],
      [{ inference_geo: 'asia' }, 140, 'standard'],
    ] as const) {
      fixture.upstream.script('messages', wholeMessage([{ text: 'said' }], { counts: counts(more) }))
      expect(await row(await post('messages', 'messages'))).toMatchObject({
        quota: quota + REQUEST,
        service_tier: tier,
        region: more.inference_geo,
      })
    }
  })
})

describe('tokens written to a cache', () => {
  const written = (details?: object) => ({
    ...CHAT_USAGE,
    prompt_tokens_details: {
      cache_write_tokens: 60,
      ...(details && { cache_write_tokens_details: details }),
    },
  })

  test('tokens written to a cache are charged by the cache lifetimes that the provider states', async () => {
    fixture.upstream.script('chat', chat({}, written({ ttl_12h_tokens: 20 })))
    // 40 × 1 + 40 × 1.25 + 20 × 2 + 10 × 4
    expect(await row(await post('chat', 'chat'))).toMatchObject({
      quota: 40 + 50 + 40 + 40 + REQUEST,
      cache_write_30m_tokens: 40,
      cache_write_12h_tokens: 20,
    })
  })

  test('cache writes without a stated lifetime are charged by the longest one that the request names, or by 5 minutes', async () => {
    fixture.upstream.script('chat', chat({}, written()), chat({}, written()))
    expect(await row(await post('chat', 'chat'))).toMatchObject({ cache_write_5m_tokens: 60 })
    const named = await post('chat', 'chat', { prompt_cache_options: { ttl: '12h' } })
    expect(await row(named)).toMatchObject({ cache_write_12h_tokens: 60, cache_write_5m_tokens: 0 })
  })
})
