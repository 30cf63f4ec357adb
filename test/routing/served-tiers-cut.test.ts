import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call, open } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { geminiFrames } from '../fixtures/gemini-behaviour.ts'
import { messageFrames, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { type ProxyServer, PROXY_PASSWORD, PROXY_USER, startHttpProxy } from '../fixtures/proxy-servers.ts'
import { frames as responsesFrames } from '../fixtures/responses-behaviour.ts'

type Fields = Record<string, unknown>

/** Quota units a token: 1 for input, 4 for output, ten times as much for fast, a tenth for flex. */
const price = { input: 2, output: 8, service: { fast: 10, flex: 0.1 }, regions: { us: 3, eu: 1 } }

let fixture: Fixture
let proxy: ProxyServer
beforeAll(async () => {
  const routes = new Map<string, number>()
  proxy = await startHttpProxy(routes)
  fixture = await startFixture((upstream) => {
    routes.set('api.anthropic.com:80', Number(new URL(upstream.baseUrl('x')).port))
    const through = `http://${PROXY_USER}:${encodeURIComponent(PROXY_PASSWORD)}@${proxy.address}`
    const channels = [
      channel('chat', upstream.baseUrl('chat'), { allow: ['service_tier'] }),
      channel('chat-default', upstream.baseUrl('chat-default'), {
        override: { default: { service_tier: 'flex' } },
      }),
      channel('messages', upstream.baseUrl('messages'), { protocol: 'messages' }),
      channel('responses', upstream.baseUrl('responses'), { protocol: 'responses' }),
      channel('gemini', upstream.baseUrl('gemini'), { protocol: 'gemini' }),
      channel('claude-opus-4-6', 'http://api.anthropic.com/geo/v1', {
        protocol: 'messages',
        proxy: through,
        allow: ['inference_geo'],
      }),
    ]
    return {
      options: { retries: 0 },
      rate_limits: { global: { requests: 0 } },
      models: Object.fromEntries(
        channels.map(({ name }) => [
          name,
          { price: name === 'claude-opus-4-6' ? { input: 2, output: 8 } : price },
        ]),
      ),
      channels,
      users: [ROOT, user(2, 'ann', [token('ann')]), ADMIN_USER],
    }
  })
})
afterAll(async () => {
  await fixture?.close()
  await proxy?.close()
})

interface Row {
  readonly quota: number
  readonly reason: string
  readonly service_tier: string
  readonly region: string
  readonly price_incomplete: boolean
  readonly cost: readonly { kind: string; count: number; price_usd: string }[] | null
}

/** The row of a call, once there is one. */
function row(id: unknown): Promise<Row> {
  return vi.waitFor(async () => {
    const { status, data } = await manage<Row>(fixture.gateway.url, ADMIN, `GET /api/log/${String(id)}`)
    expect(status).toBe(200)
    return data
  }, 60_000)
}

const CLIENTS = {
  chat: { path: '/v1/chat/completions', body: { messages: [{ role: 'user', content: 'hi' }] } },
  messages: { path: '/v1/messages', body: { max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] } },
  responses: { path: '/v1/responses', body: { input: 'hi' } },
} as const
type Client = keyof typeof CLIENTS

const request = (client: Client, model: string, fields: Fields) => ({
  body: { model, ...CLIENTS[client].body, ...fields },
  options: { key: 'ann', path: CLIENTS[client].path },
})

const chatFrame = (fields: object): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 7, model: 'm', ...fields })}\n\n`
const words = { index: 0, delta: { content: 'some words' } }

/** Beginnings of streams that state how they are served, and the tier and region that they state. */
const CUT = {
  chat: {
    frames: [chatFrame({ service_tier: 'priority', choices: [words] }), chatFrame({ choices: [words] })],
    tier: 'fast',
    region: '',
  },
  responses: {
    frames: responsesFrames({ text: 'some words' })
      .slice(0, 6)
      .map((frame) => frame.replace('"object":"response"', '"object":"response","service_tier":"flex"')),
    tier: 'flex',
    region: '',
  },
  messages: {
    frames: messageFrames([{ text: 'some words' }], {
      counts: {
        input_tokens: 100,
        output_tokens: 1,
        speed: 'fast',
        inference_geo: 'us',
      },
    }).slice(0, 5),
    tier: 'fast',
    region: 'us',
  },
  gemini: {
    frames: geminiFrames({ text: 'some words', usage: '{"trafficType":"ON_DEMAND_FLEX"}' }).slice(0, 2),
    tier: 'flex',
    region: '',
  },
} as const
const PRICES = { fast: 20, flex: 0.2 } as const

const ROADS = (['chat', 'messages', 'responses'] as const).flatMap((client) =>
  (Object.keys(CUT) as (keyof typeof CUT)[]).map((model) => [client, model] as const),
)

describe('a stream that breaks off before its usage', () => {
  test.each(ROADS)(
    'a stream to a client of %s from %s that breaks off is charged by the service tier and region that it had stated',
    async (client, model) => {
      const { frames, tier, region } = CUT[model]
      fixture.upstream.script(model, { kind: 'stream', frames, ending: 'reset' })
      const { body, options } = request(client, model, { stream: true })
      const { headers, text } = await call(fixture.gateway.url, body, options)
      expect(text).toContain('som')
      const { cost, ...charged } = await row(headers['x-request-id'])
      expect(charged).toMatchObject({ reason: 'cut', service_tier: tier, region, price_incomplete: false })
      const factor = region === 'us' ? 3 : 1
      expect(cost?.[0]).toMatchObject({ kind: 'input', price_usd: String(PRICES[tier] * factor) })
    },
  )

  test('a stream that its client left is charged by the service tier that it had stated', async () => {
    fixture.upstream.script('chat', { kind: 'stream', frames: CUT.chat.frames, ending: 'stall' })
    const { body, options } = request('chat', 'chat', { stream: true })
    const live = await open(fixture.gateway.url, body, options)
    await live.until('some words')
    const id = live.headers['x-request-id']
    live.abort()
    expect(await row(id)).toMatchObject({ reason: 'client_gone', service_tier: 'fast' })
  })

  test('a stream that breaks off before it states a service tier is charged by the tier of the request', async () => {
    const silent = [chatFrame({ service_tier: 'auto', choices: [words] })]
    fixture.upstream.script('chat', { kind: 'stream', frames: silent, ending: 'reset' })
    const { body, options } = request('chat', 'chat', { stream: true, service_tier: 'flex' })
    const { headers } = await call(fixture.gateway.url, body, options)
    expect(await row(headers['x-request-id'])).toMatchObject({ reason: 'cut', service_tier: 'flex' })
  })

  test('a whole answer without usage is estimated, and charged by the service tier that it states', async () => {
    const choices = [{ index: 0, message: { role: 'assistant', content: 'words' }, finish_reason: 'stop' }]
    const answer = { id: 'c', object: 'chat.completion', created: 7, model: 'm', choices }
    for (const client of ['chat', 'messages'] as const) {
      fixture.upstream.script('chat', {
        kind: 'whole',
        body: JSON.stringify({ ...answer, service_tier: 'priority' }),
      })
      const { body, options } = request(client, 'chat', {})
      const { headers } = await call(fixture.gateway.url, body, options)
      expect(await row(headers['x-request-id'])).toMatchObject({ reason: 'estimated', service_tier: 'fast' })
    }
  })
})

interface Running {
  readonly id: string
  readonly cost: number
  readonly held: number
}

/** The calls under way. */
async function running(): Promise<readonly Running[]> {
  const { data } = await manage<{ items: Running[] }>(fixture.gateway.url, ADMIN, 'GET /api/running')
  return data.items
}

describe('what a running call has cost', () => {
  const holds = () => databaseOf(fixture.gateway.dataDir).openHolds()
  const long = 'word '.repeat(300)
  const frame = (service_tier?: string) =>
    chatFrame({ ...(service_tier && { service_tier }), choices: [{ index: 0, delta: { content: long } }] })

  test('running calls are listed and, after a crash, charged at the price of the tier that was requested or stated', async () => {
    const opened: { readonly id: string; readonly factor: number }[] = []
    for (const [requested, stated, factor] of [
      ['flex', undefined, 0.1],
      ['priority', undefined, 10],
      ['priority', 'default', 1],
      [undefined, 'priority', 10],
    ] as const) {
      fixture.upstream.script('chat', { kind: 'stream', frames: [frame(stated)], ending: 'stall' })
      const fields = { stream: true, max_tokens: 100_000, ...(requested && { service_tier: requested }) }
      const { body, options } = request('chat', 'chat', fields)
      const live = await open(fixture.gateway.url, body, options)
      await live.until('word')
      opened.push({ id: String(live.headers['x-request-id']), factor })
    }
    const calls = await running()
    for (const { id, factor } of opened) {
      const cost = calls.find((one) => one.id === id)?.cost ?? 0
      // Three bytes of text count as a token until it is counted exactly.
      expect(cost).toBeGreaterThanOrEqual(Math.floor(500 * 4 * factor))
      expect(cost).toBeLessThan(Math.ceil(530 * 4 * factor))
      const marked = await vi.waitFor(() => {
        const hold = holds().find((one) => one.id === id)
        expect(hold?.progress_amount).toBeGreaterThan(0)
        return hold
      }, 60_000)
      expect((marked?.prompt_amount ?? 0) + (marked?.progress_amount ?? 0)).toBe(cost)
    }
    await fixture.gateway.kill()
    await fixture.gateway.restart()
    // A tier that was not requested may cost more than was held.
    for (const { id, cost, held } of calls)
      expect(databaseOf(fixture.gateway.dataDir).usageOf(id)).toMatchObject({
        reason: 'crash',
        quota: Math.min(cost, held),
      })
  })
})

describe('the prompt of a call that is lost before its first mark', () => {
  test('the prompt of a call that is lost in a crash is charged at the requested service tier', async () => {
    const amounts: number[] = []
    for (const tier of ['flex', 'priority', undefined]) {
      const ready = Promise.withResolvers<void>()
      fixture.upstream.script('chat', { kind: 'whole', after: ready.promise })
      const messages = [{ role: 'user', content: 'word '.repeat(2_000) }]
      const { body, options } = request('chat', 'chat', { messages, ...(tier && { service_tier: tier }) })
      const answer = call(fixture.gateway.url, body, options)
      await fixture.upstream.receivedAtLeast('chat', 1)
      const hold = await vi.waitFor(() => {
        const [open] = databaseOf(fixture.gateway.dataDir).openHolds()
        expect(open).toBeDefined()
        return open
      }, 60_000)
      amounts.push(hold?.prompt_amount ?? 0)
      ready.resolve()
      expect((await answer).status).toBe(200)
      await vi.waitFor(() => expect(databaseOf(fixture.gateway.dataDir).openHolds()).toEqual([]), 60_000)
    }
    const [flex = 0, fast = 0, standard = 0] = amounts
    // The field itself counts as a part of the prompt.
    expect(flex / standard).toBeCloseTo(0.1, 2)
    expect(fast / standard).toBeCloseTo(10, 0)
  })
})

describe('a hold at api.anthropic.com', () => {
  test('a hold covers the price of the most expensive region unless the request names a region', async () => {
    const amounts: number[] = []
    for (const geo of [undefined, 'eu', 'us']) {
      const ready = Promise.withResolvers<void>()
      fixture.upstream.script('geo', { ...wholeMessage([{ text: 'said' }]), after: ready.promise })
      const fields = { max_tokens: 1000, ...(geo && { inference_geo: geo }) }
      const { body, options } = request('messages', 'claude-opus-4-6', fields)
      const answer = call(fixture.gateway.url, body, options)
      await fixture.upstream.receivedAtLeast('geo', 1)
      const calls = await running()
      expect(calls).toHaveLength(1)
      amounts.push(calls[0]?.held ?? 0)
      ready.resolve()
      expect((await answer).status).toBe(200)
    }
    const [unnamed = 0, elsewhere = 0, us = 0] = amounts
    // The field itself counts as a part of the prompt.
    expect(us / unnamed).toBeCloseTo(1, 1)
    expect(unnamed).toBeGreaterThan(elsewhere)
    expect(us / elsewhere).toBeCloseTo(1.1, 3)
  })
})

describe('a tier that an override sends by default', () => {
  test('a service tier that the channel adds to its requests by default is charged if the answer states none', async () => {
    fixture.upstream.script('chat-default', {
      kind: 'whole',
      usage: '{"prompt_tokens":100,"completion_tokens":10}',
    })
    const { body, options } = request('chat', 'chat-default', {})
    const { headers } = await call(fixture.gateway.url, body, options)
    expect(JSON.parse(fixture.upstream.only('chat-default').text)).toMatchObject({ service_tier: 'flex' })
    expect(await row(headers['x-request-id'])).toMatchObject({ service_tier: 'flex', quota: 14 })
  })
})
