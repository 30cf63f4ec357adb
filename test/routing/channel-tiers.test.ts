import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { API_KEY, REGION, startBedrock } from '../fixtures/providers/bedrock.ts'
import type { Double } from '../fixtures/providers/double.ts'
import { startVertex, type VertexDouble } from '../fixtures/providers/vertex.ts'
import { type ProxyServer, PROXY_PASSWORD, PROXY_USER, startHttpProxy } from '../fixtures/proxy-servers.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'

type Fields = Record<string, unknown>
type Protocol = 'chat' | 'messages' | 'responses' | 'gemini'
type Client = Protocol | 'compaction'

const price = { input: 2, output: 8 }
const CLAUDE = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0'
const NOVA = 'eu.amazon.nova-lite-v1:0'

const BEDROCK_MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5',
  content: [{ type: 'text', text: 'said' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 12, output_tokens: 7 },
}
const CONVERSED = {
  output: { message: { role: 'assistant', content: [{ text: 'said' }] } },
  stopReason: 'end_turn',
  usage: { inputTokens: 12, outputTokens: 7, totalTokens: 19 },
  metrics: { latencyMs: 1 },
}
const GENERATED = JSON.stringify({
  candidates: [{ content: { role: 'model', parts: [{ text: 'said' }] }, finishReason: 'STOP', index: 0 }],
  usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 7, totalTokenCount: 19 },
})

const CLIENTS: Readonly<Record<Client, { readonly path: string; readonly body: Fields }>> = {
  chat: { path: '/v1/chat/completions', body: { messages: [{ role: 'user', content: 'hi' }] } },
  messages: { path: '/v1/messages', body: { max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] } },
  responses: { path: '/v1/responses', body: { input: 'hi' } },
  compaction: { path: '/v1/responses/compact', body: { input: 'hi' } },
  gemini: { path: '', body: { contents: [{ parts: [{ text: 'hi' }] }] } },
}

let fixture: Fixture
let bedrock: Double
let vertex: VertexDouble
let proxy: ProxyServer

beforeAll(async () => {
  bedrock = await startBedrock((_, operation) =>
    operation.startsWith('converse') ? { whole: CONVERSED } : { whole: BEDROCK_MESSAGE },
  )
  vertex = await startVertex(() => ({ body: GENERATED }))
  const routes = new Map<string, number>()
  proxy = await startHttpProxy(routes)
  fixture = await startFixture((upstream) => {
    const port = Number(new URL(upstream.baseUrl('x')).port)
    for (const host of ['api.openai.com:80', 'api.anthropic.com:80']) routes.set(host, port)
    const through = `http://${PROXY_USER}:${encodeURIComponent(PROXY_PASSWORD)}@${proxy.address}`
    const at = (name: string, protocol: Protocol, fields: Fields) =>
      channel(name, upstream.baseUrl(name), { protocol, ...fields })
    const atHost = (host: string, name: string, fields: Fields) =>
      channel(name, `http://${host}/${name}/v1`, { proxy: through, ...fields })
    const onBedrock = (name: string, model: string, fields: Fields) =>
      channel(name, bedrock.url, {
        provider: 'bedrock',
        region: REGION,
        keys: [API_KEY],
        model_mapping: { [name]: model },
        ...fields,
      })
    const onVertex = (name: string, fields: Fields) =>
      channel(name, vertex.url, {
        provider: 'vertex',
        protocol: 'gemini',
        keys: [vertex.serviceAccount],
        model_mapping: { [name]: 'gemini-2.5-pro' },
        ...fields,
      })
    const channels = [
      at('chat-flex', 'chat', { service_tier: 'flex' }),
      at('chat-fast', 'chat', { service_tier: 'fast', allow: ['service_tier'] }),
      at('chat-open', 'chat', { service_tier: 'priority', pass_through: true }),
      at('chat-own', 'chat', { service_tier: 'Performance' }),
      at('chat-set', 'chat', { service_tier: 'flex', override: { set: { service_tier: 'priority' } } }),
      at('responses-flex', 'responses', { service_tier: 'flex' }),
      at('responses-asked', 'responses', { allow: ['service_tier'] }),
      at('responses-set', 'responses', {
        service_tier: 'flex',
        override: { set: { service_tier: 'priority', temperature: 0 } },
      }),
      at('messages-fast', 'messages', { service_tier: 'priority' }),
      at('messages-standard', 'messages', { service_tier: 'standard', allow: ['service_tier', 'speed'] }),
      at('gemini-flex', 'gemini', { service_tier: 'flex' }),
      at('gemini-fast', 'gemini', { service_tier: 'fast' }),
      at('gemini-auto', 'gemini', { service_tier: 'auto', allow: ['service_tier'] }),
      atHost('api.openai.com', 'openai-closed', {}),
      atHost('api.openai.com', 'openai-compact', { protocol: 'responses' }),
      atHost('api.openai.com', 'openai-compact-set', {
        protocol: 'responses',
        override: { default: { service_tier: 'priority' } },
      }),
      atHost('api.openai.com', 'openai-auto', { service_tier: 'auto' }),
      atHost('api.openai.com', 'openai-ultra', { protocol: 'responses', service_tier: 'ultrafast' }),
      onBedrock('invoke-flex', CLAUDE, { protocol: 'messages', service_tier: 'flex' }),
      onBedrock('invoke-asked', CLAUDE, { protocol: 'messages', allow: ['service_tier'] }),
      onBedrock('invoke-reserved', CLAUDE, { protocol: 'messages', service_tier: 'reserved' }),
      onBedrock('converse-fast', NOVA, { protocol: 'converse', service_tier: 'fast' }),
      onBedrock('converse-reserved', NOVA, { protocol: 'converse', service_tier: 'reserved' }),
      onVertex('vertex-flex', { service_tier: 'flex' }),
      onVertex('vertex-bought', { service_tier: 'provisioned' }),
      onVertex('vertex-asked', { allow: ['service_tier'] }),
    ]
    return {
      options: { retries: 0, media: { allow_private_networks: true } },
      models: Object.fromEntries(channels.map(({ name }) => [name, { price }])),
      channels,
      users: [ROOT, user(2, 'ann', [token('ann')]), ADMIN_USER],
    }
  })
})
afterAll(async () => {
  await fixture?.close()
  await Promise.all([bedrock?.close(), vertex?.close(), proxy?.close()])
})
beforeEach(() => {
  bedrock.received.length = 0
  vertex.received.length = 0
})

const post = async (client: Client, model: string, fields: Fields = {}): Promise<FullResponse> => {
  const { path, body } = CLIENTS[client]
  const named = path === '' ? {} : { model }
  const answer = await call(
    fixture.gateway.url,
    { ...named, ...body, ...fields },
    {
      key: 'ann',
      path: path || `/v1beta/models/${model}:generateContent`,
      headers: path === '' ? { 'x-goog-api-key': 'sk-ann' } : {},
    },
  )
  expect(answer.status, answer.text).toBe(200)
  return answer
}

/** The answers of the lanes, by the beginning of their names. */
const ANSWERS = {
  messages: wholeMessage([{ text: 'said' }]),
  responses: wholeResponse({ text: 'said' }),
  'openai-ultra': wholeResponse({ text: 'said' }),
  'openai-compact': wholeResponse({ text: 'said' }),
  gemini: wholeGemini({ text: 'said' }),
} as const

/** What a lane received for a call. */
async function sent(client: Client, model: string, fields: Fields = {}) {
  const known = Object.entries(ANSWERS).find(([name]) => model.startsWith(name))?.[1]
  fixture.upstream.script(model, known ?? { kind: 'whole' })
  const { headers: answered } = await post(client, model, fields)
  const { text, headers } = fixture.upstream.only(model)
  const row = await manage<{ service_tier: string; price_incomplete: boolean }>(
    fixture.gateway.url,
    ADMIN,
    `GET /api/log/${String(answered['x-request-id'])}`,
  )
  return { body: JSON.parse(text) as Fields, headers, row: row.data }
}

describe("a channel's own tier of service", () => {
  test.each([
    ['chat', 'chat-flex', 'service_tier', 'flex', 'flex'],
    ['messages', 'chat-flex', 'service_tier', 'flex', 'flex'],
    ['responses', 'chat-flex', 'service_tier', 'flex', 'flex'],
    ['chat', 'chat-fast', 'service_tier', 'priority', 'fast'],
    ['chat', 'chat-open', 'service_tier', 'priority', 'fast'],
    ['chat', 'chat-own', 'service_tier', 'performance', 'performance'],
    ['chat', 'chat-set', 'service_tier', 'priority', 'fast'],
    ['responses', 'responses-flex', 'service_tier', 'flex', 'flex'],
    ['chat', 'responses-flex', 'service_tier', 'flex', 'flex'],
    ['messages', 'messages-fast', 'speed', 'fast', 'fast'],
    ['chat', 'messages-fast', 'speed', 'fast', 'fast'],
    ['messages', 'messages-standard', 'service_tier', 'standard_only', 'standard'],
    ['gemini', 'gemini-flex', 'serviceTier', 'flex', 'flex'],
    ['chat', 'gemini-fast', 'serviceTier', 'priority', 'fast'],
  ] as const)(
    "a channel's service tier is sent whatever the client requests: %s to %s in %s as %s",
    async (client, model, member, value, tier) => {
      const requested = client === 'gemini' ? { serviceTier: 'standard' } : { service_tier: 'default' }
      for (const fields of [{}, client === 'messages' ? { speed: 'fast' } : requested]) {
        const { body, row } = await sent(client, model, fields)
        const named = Object.entries(body).filter(([name]) =>
          ['speed', 'service_tier', 'serviceTier'].includes(name),
        )
        expect(named).toEqual([[member, value]])
        expect(row.service_tier).toBe(tier)
      }
    },
  )

  test("a channel with the service tier fast adds this tier's beta feature to the beta features of a messages client", async () => {
    const { headers } = await sent('chat', 'messages-fast')
    expect(headers['anthropic-beta']).toBe('fast-mode-2026-02-01')
    fixture.upstream.script('messages-fast', wholeMessage([{ text: 'said' }]))
    await call(
      fixture.gateway.url,
      { model: 'messages-fast', ...CLIENTS.messages.body },
      { key: 'ann', path: '/v1/messages', headers: { 'anthropic-beta': 'context-1m-2025-08-07' } },
    )
    expect(fixture.upstream.only('messages-fast').headers['anthropic-beta']).toBe(
      'context-1m-2025-08-07,fast-mode-2026-02-01',
    )
  })

  test('on a channel with the service tier auto, the price of an answer that states no tier is marked incomplete', async () => {
    const closed = await sent('chat', 'openai-closed')
    expect(closed.body['service_tier']).toBe('default')
    expect(closed.row).toMatchObject({ service_tier: 'standard', price_incomplete: false })
    const auto = await sent('chat', 'openai-auto', { service_tier: 'flex' })
    expect(auto.body['service_tier']).toBe('auto')
    expect(auto.row).toMatchObject({ service_tier: 'standard', price_incomplete: true })
    const gemini = await sent('gemini', 'gemini-auto', { serviceTier: 'priority' })
    expect(gemini.body).not.toHaveProperty('serviceTier')
  })

  test('a channel with the service tier ultrafast sends it to OpenAI, and is charged for it if the answer states none', async () => {
    const { body, row } = await sent('responses', 'openai-ultra')
    expect(body['service_tier']).toBe('ultrafast')
    expect(row).toMatchObject({ service_tier: 'ultrafast', price_incomplete: false })
  })

  test.each([
    ["the channel's", 'responses-flex', 'flex', 'flex'],
    ["the client's, where the channel allows it", 'responses-asked', 'priority', 'fast'],
    ["that of the channel's override, of which nothing else is sent", 'responses-set', 'priority', 'fast'],
    ['a default of the override at OpenAI', 'openai-compact-set', 'priority', 'fast'],
  ])('a compaction is sent with a service tier and charged by it: %s', async (_, model, value, tier) => {
    const { body, row } = await sent('compaction', model, { service_tier: 'priority' })
    expect(body).toEqual({ model, input: 'hi', service_tier: value })
    expect(row.service_tier).toBe(tier)
  })

  test('a compaction at OpenAI names no tier, and is marked because the project may have chosen a dearer one', async () => {
    const { body, row } = await sent('compaction', 'openai-compact', { service_tier: 'priority' })
    expect(body).toEqual({ model: 'openai-compact', input: 'hi' })
    expect(row).toMatchObject({ service_tier: 'standard', price_incomplete: true })
  })

  test('token count requests and legacy completions are sent without the service tier of the channel', async () => {
    fixture.upstream.script('messages-fast', { kind: 'status', status: 200, body: '{"input_tokens":3}' })
    const { status } = await call(
      fixture.gateway.url,
      { model: 'messages-fast', messages: [{ role: 'user', content: 'hi' }] },
      { key: 'ann', path: '/v1/messages/count_tokens' },
    )
    expect(status).toBe(200)
    expect(fixture.upstream.only('messages-fast').text).not.toContain('speed')
    for (const model of ['chat-flex', 'openai-closed']) {
      fixture.upstream.script(model, { kind: 'whole' })
      await call(fixture.gateway.url, { model, prompt: 'hi' }, { key: 'ann', path: '/v1/completions' })
      expect(fixture.upstream.only(model).text).not.toContain('service_tier')
    }
  })
})

describe('tiers that are headers', () => {
  const BEDROCK_HEADER = 'x-amzn-bedrock-service-tier'
  const VERTEX_HEADER = 'x-vertex-ai-llm-shared-request-type'

  test.each([
    ['messages', 'invoke-flex', {}, 'flex', undefined],
    ['chat', 'invoke-flex', { service_tier: 'priority' }, 'flex', 'service_tier'],
    ['messages', 'invoke-asked', { service_tier: 'priority' }, 'priority', undefined],
    ['chat', 'invoke-asked', { service_tier: 'flex' }, 'flex', undefined],
    ['messages', 'invoke-asked', { service_tier: 'standard_only' }, 'default', undefined],
    ['messages', 'invoke-asked', { service_tier: 'auto' }, undefined, undefined],
    ['messages', 'invoke-asked', {}, undefined, undefined],
    ['messages', 'invoke-reserved', {}, 'reserved', undefined],
  ] as const)(
    "a channel's service tier is sent to Bedrock in a header: %s to %s with %j sends %s",
    async (client, model, fields, value, dropped) => {
      const { headers: answered } = await post(client, model, fields)
      const [request] = bedrock.received
      expect(request?.headers[BEDROCK_HEADER]).toBe(value)
      expect(request?.body.toString()).not.toContain('service_tier')
      expect(answered['x-gateway-dropped']).toBe(dropped)
    },
  )

  test('a service tier that Bedrock lacks is left out of the request and listed as dropped', async () => {
    const { headers } = await post('chat', 'invoke-asked', { service_tier: 'ultrafast' })
    expect(headers['x-gateway-dropped']).toBe('service_tier')
    expect(bedrock.received[0]?.headers).not.toHaveProperty(BEDROCK_HEADER)
  })

  test.each([
    ['converse-fast', 'priority'],
    ['converse-reserved', 'reserved'],
  ])('a request to the Converse API has the service tier in its body: %s', async (model, type) => {
    await post('chat', model)
    const { serviceTier } = JSON.parse(String(bedrock.received[0]?.body)) as Fields
    expect(serviceTier).toEqual({ type })
  })

  test.each([
    ['chat', 'vertex-flex', {}, { [VERTEX_HEADER]: 'flex' }],
    ['gemini', 'vertex-flex', { serviceTier: 'priority' }, { [VERTEX_HEADER]: 'flex' }],
    ['gemini', 'vertex-bought', {}, { 'x-vertex-ai-llm-request-type': 'dedicated' }],
    ['gemini', 'vertex-asked', { serviceTier: 'priority' }, { [VERTEX_HEADER]: 'priority' }],
    ['chat', 'vertex-asked', { service_tier: 'flex' }, { [VERTEX_HEADER]: 'flex' }],
    ['gemini', 'vertex-asked', { serviceTier: 'standard' }, {}],
  ] as const)(
    "a channel's service tier is sent to Vertex in headers: %s to %s with %j sends %j",
    async (client, model, fields, expected) => {
      await post(client, model, fields)
      const request = vertex.received.find(({ path }) => path.includes('/models/'))
      const tiers = Object.entries(request?.headers ?? {}).filter(([name]) => name.startsWith('x-vertex-ai'))
      expect(Object.fromEntries(tiers)).toEqual(expected)
      expect(request?.body.toString()).not.toMatch(/serviceTier|service_tier/)
    },
  )
})

describe('a tier of a channel over HTTP', () => {
  const make = (type: number, tier: unknown, fields: Fields = {}) =>
    manage<{ ids: number[] }>(fixture.gateway.url, ADMIN, 'POST /api/channel/', {
      name: `t-${type}-${String(tier)}`,
      type,
      key: 'sk-x',
      models: 'chat-flex',
      service_tier: tier,
      ...fields,
    })

  test('creating a channel with a service tier that its provider lacks is refused with 400, which names the tiers it has', async () => {
    for (const [type, tier, has] of [
      [1, 'provisioned', 'auto, standard, flex, fast or priority, ultrafast, reserved'],
      [14, 'flex', 'auto, standard, fast or priority'],
      [24, 'ultrafast', 'auto, standard, flex, fast or priority'],
    ] as const) {
      const { status, message } = await make(type, tier)
      expect(status).toBe(400)
      expect(message).toContain(
        `service_tier: expected a tier of service that the provider has (${has}), found "${tier}"`,
      )
    }
    expect(await make(1, 'no tier')).toMatchObject({ status: 400 })
  })

  test('the service tier of a channel can be read, changed and removed over HTTP', async () => {
    const { data, message } = await make(1, 'flex')
    expect(message).toBe('')
    const [id = 0] = data.ids
    const shown = async () =>
      (await manage<Fields>(fixture.gateway.url, ADMIN, `GET /api/channel/${id}`)).data['service_tier']
    expect(await shown()).toBe('flex')
    await manage(fixture.gateway.url, ADMIN, 'PUT /api/channel/', { id, service_tier: 'priority' })
    expect(await shown()).toBe('priority')
    await manage(fixture.gateway.url, ADMIN, 'PUT /api/channel/', { id, name: 'renamed' })
    expect(await shown()).toBe('priority')
    await manage(fixture.gateway.url, ADMIN, 'PUT /api/channel/', { id, service_tier: null })
    expect(await shown()).toBeNull()
  })
})
