import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, startFixture, type Fixture } from '../fixtures/fixture.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const VIC = { id: 3, accessToken: 'the-access-token-of-vic' }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }

/** Prices that ratios cannot express. */
const OFFERED = {
  'free-prompts': { price: { input: 0, output: 20, request: 0.5 } },
  'each-call': { price: { input: 3, output: 15, request: 0.012 } },
  'long-prompts': { price: { input: 3, output: 15, tiers: [{ above: 2000, input: 6, output: 30 }] } },
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: {},
    groups: { vip: { ratio: 1.5, open: false } },
    models: { filed: { price: { input: 3, output: 15 } }, ...OFFERED },
    channels: [
      channel('up', upstream.baseUrl('up'), {
        models: ['filed', 'novel', 'fixed', 'gpt-4o', 'spoken', 'painted'],
        groups: ['default', 'vip'],
      }),
      channel('offering', upstream.baseUrl('up'), { models: Object.keys(OFFERED), groups: ['vip'] }),
      channel('closed', upstream.baseUrl('closed'), { models: ['hidden'], groups: ['vip'] }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [token('ann')], { access_token: ANN.accessToken }),
      user(3, 'vic', [token('vic')], { group: 'vip', access_token: VIC.accessToken }),
    ],
  }))
  fixture.upstream.script('up', { kind: 'whole', usage: usageText(2604, 383, 2432) })
})
afterAll(() => fixture.close())

const put = async (key: string, value: object | string): Promise<number> =>
  (
    await manage(fixture.gateway.url, ROOT_ACCOUNT, 'PUT /api/option/', {
      key,
      value: typeof value === 'string' ? value : JSON.stringify(value),
    })
  ).status

const charged = async (model: string, key = 'ann') => {
  const answer = await fixture.chat(key, ask(model))
  expect(answer.status).toBe(200)
  return databaseOf(fixture.gateway.dataDir).usageOf(String(answer.headers['x-request-id']))
}

interface Pricing {
  readonly success: boolean
  readonly data: Record<string, unknown>[]
  readonly group_ratio: Record<string, number>
  readonly usable_group: Record<string, string>
  readonly tools: readonly Record<string, unknown>[]
}
const pricing = async (account = ANN): Promise<Pricing> =>
  (await manage(fixture.gateway.url, account, 'GET /api/pricing')).body as unknown as Pricing

const priceOf = async (model: string) => (await pricing()).data.find((one) => one['model_name'] === model)

describe('prices set over HTTP', () => {
  test('prices set over HTTP are charged exactly: 2604 prompt tokens of which 2432 are cached, and 383 of output', async () => {
    // The model is refused while it has no price.
    expect((await fixture.chat('ann', ask('novel'))).status).toBe(400)
    expect(await put('ModelRatio', { novel: 1 })).toBe(200)
    expect(await put('CompletionRatio', { novel: 1 })).toBe(200)
    // 172 + 2432 / 10 + 383 = 798.2
    expect((await charged('novel'))?.quota).toBe(798)
    await put('CacheRatio', { novel: 0.25 })
    // 172 + 608 + 383
    expect((await charged('novel'))?.quota).toBe(1163)
    await put('CompletionRatio', { novel: 4.1 })
    // 172 + 608 + 1570.3
    expect((await charged('novel'))?.quota).toBe(2350)
    // One and a half times as much, rounded once: 3525.45
    expect((await charged('novel', 'vic'))?.quota).toBe(3525)
  })

  test("a model's completion ratio may be set over HTTP before its base ratio", async () => {
    await put('CompletionRatio', { late: 3 })
    await put('ModelRatio', { novel: 1, late: 0.5 })
    const { data } = await manage<{ key: string; value: string }[]>(
      fixture.gateway.url,
      ROOT_ACCOUNT,
      'GET /api/option/',
    )
    const shown = (key: string) => JSON.parse(data.find((one) => one.key === key)?.value ?? '{}')['late']
    expect([shown('ModelRatio'), shown('CompletionRatio')]).toEqual([0.5, 3])
  })

  test('prices of audio tokens may be set over HTTP, relative to those of text', async () => {
    const details =
      '"prompt_tokens_details":{"audio_tokens":60},"completion_tokens_details":{"audio_tokens":5}'
    fixture.upstream.script('up', {
      kind: 'whole',
      usage: `{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110,${details}}`,
    })
    for (const [key, ratio] of [
      ['ModelRatio', 1],
      ['AudioRatio', 2],
      ['AudioCompletionRatio', 3],
    ] as const)
      expect(await put(key, { novel: 1, spoken: ratio })).toBe(200)
    // 40 + 60 × 2 + 5 + 5 × 2 × 3
    expect((await charged('spoken'))?.quota).toBe(195)
    expect(await priceOf('spoken')).toMatchObject({ audio_ratio: 2, audio_completion_ratio: 3 })
    fixture.upstream.script('up', { kind: 'whole', usage: usageText(2604, 383, 2432) })
  })

  test('prices set over HTTP may be per second, character, search unit or image, without a price of tokens', async () => {
    expect(await put('SecondPrice', { painted: 0.0001 })).toBe(200)
    expect(await put('CharacterPrice', { painted: 15 })).toBe(200)
    expect(await put('SearchUnitPrice', { painted: 0.002 })).toBe(200)
    expect(await put('ImagePrice', { painted: { default: 0.04, '1024x1024/hd': 0.08 } })).toBe(200)
    expect(await priceOf('painted')).toMatchObject({
      model_ratio: 0,
      second_price: 0.0001,
      character_price: 15,
      search_unit_price: 0.002,
      image_price: { default: 0.04, '1024x1024/hd': 0.08 },
    })
    expect(await put('ImagePrice', { painted: 0.05 })).toBe(200)
    expect(await priceOf('painted')).toMatchObject({ image_price: { default: 0.05 } })
    for (const key of ['SecondPrice', 'CharacterPrice', 'SearchUnitPrice', 'ImagePrice'])
      expect(await put(key, {})).toBe(200)
    expect(await priceOf('painted')).toBeUndefined()
  })

  test.each([{ painted: {} }, { painted: 'much' }, { painted: { 'a b': 1 } }, { painted: { default: -1 } }])(
    'invalid prices of images are refused: %j',
    async (value) => {
      expect(await put('ImagePrice', value)).toBe(400)
    },
  )

  test('prices set over HTTP may be per call instead of per token', async () => {
    await put('ModelPrice', { fixed: 0.02 })
    // 0.02 USD × 500,000
    expect((await charged('fixed'))?.quota).toBe(10_000)
    expect((await charged('fixed', 'vic'))?.quota).toBe(15_000)
    await put('ModelPrice', {})
    expect((await fixture.chat('ann', ask('fixed'))).status).toBe(400)
  })

  test('charges at prices that are set over HTTP are computed in decimals, without rounding errors of binary fractions', async () => {
    // 2604 × 0.1 + 383 × 0.1 × 3 with binary fractions would not be 375.3.
    await put('ModelRatio', '{"novel": 0.1}')
    await put('CompletionRatio', '{"novel": 3}')
    await put('CacheRatio', '{"novel": 1}')
    expect((await charged('novel'))?.quota).toBe(375)
  })

  test('setting one ratio of a built-in model changes no other part of its price, and removing it restores the price', async () => {
    const before = await priceOf('gpt-4o')
    expect(before).toMatchObject({ model_ratio: 1.25, completion_ratio: 4, cache_ratio: 0.5, quota_type: 0 })
    await put('CompletionRatio', { 'gpt-4o': 5 })
    const price = {
      ...(before?.['price'] as object),
      output: '12.5',
      image_output: '12.5',
      audio_output: '12.5',
    }
    expect(await priceOf('gpt-4o')).toEqual({ ...before, completion_ratio: 5, price })
    await put('CompletionRatio', {})
    expect(await priceOf('gpt-4o')).toEqual(before)
  })

  test('calls record a price version, which changes with a price that is set over HTTP', async () => {
    await put('ModelRatio', { novel: 1 })
    const one = await charged('novel')
    await put('ModelRatio', { novel: 2 })
    const two = await charged('novel')
    await put('ModelRatio', { novel: 1 })
    const again = await charged('novel')
    const versions = [one, two, again].map(
      (row) => (row as unknown as { price_version: string }).price_version,
    )
    expect(versions[1]).not.toBe(versions[0])
    expect(versions[2]).toBe(versions[0])
  })
})

describe('GET /api/pricing', () => {
  test('GET /api/pricing lists the tools that providers run, with source and date', async () => {
    const { tools } = await pricing()
    for (const tool of tools)
      expect(tool).toEqual({
        vendor: expect.stringMatching(/^(?:openai|anthropic|google|x-ai|openrouter)$/),
        kind: expect.any(String),
        unit: expect.stringMatching(/^(?:picture|container|call|query|prompt)$/),
        price: expect.any(Number),
        source: expect.stringMatching(/\S/),
        date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
      })
    const priceOf = (vendor: string, kind: string): unknown[] =>
      tools.filter((tool) => tool['vendor'] === vendor && tool['kind'] === kind).map(({ price }) => price)
    expect(priceOf('openai', 'code_interpreter')).toEqual([0.03])
    expect(priceOf('anthropic', 'code_execution')).toEqual([0.05])
    expect(priceOf('anthropic', 'web_fetch')).toEqual([0])
    expect(priceOf('google', 'google_search')).toEqual([0.035, 0.014])
  })

  test("GET /api/pricing lists the models available to the client, by their groups' ratios", async () => {
    await put('ModelRatio', { novel: 1 })
    const { success, data, group_ratio, usable_group } = await pricing()
    expect(success).toBe(true)
    expect(data.map((one) => one['model_name'])).toEqual(['filed', 'gpt-4o', 'novel'])
    expect(data[0]).toEqual({
      model_name: 'filed',
      quota_type: 0,
      model_ratio: 1.5,
      model_price: 0,
      completion_ratio: 5,
      cache_ratio: 0.1,
      create_cache_ratio: 1.25,
      // The tool prices of the chat vendor, because the upstream is not at the address of a vendor.
      tool_prices: {
        web_search: 0.01,
        file_search: 0.0025,
        code_interpreter: 0.03,
        image_generation: 0.25,
        mcp: 0,
      },
      price: expect.objectContaining({
        input: '3',
        output: '15',
        cache_read: '0.3',
        request: '0',
      }) as unknown,
      tiers: [],
      service: {},
      regions: {},
      owned_by: 'custom',
      enable_groups: ['default'],
      supported_endpoint_types: ['compat'],
      endpoints: ['chat', 'messages', 'responses', 'gemini', 'completions'],
    })
    expect(group_ratio).toEqual({ default: 1 })
    expect(usable_group).toEqual({ default: 'default' })
  })
  // A call has 172 tokens of input, 2,432 of cached input and 383 of output; a dollar is 500,000 units.
  test.each([
    // 383 × 20 / 2 + 250,000
    ['free-prompts', { input: '0', output: '20', request: '0.5' }, [], 380_745],
    // (172 × 3 + 2,432 × 0.3 + 383 × 15) / 2 + 6,000
    ['each-call', { input: '3', output: '15', cache_read: '0.3', request: '0.012' }, [], 14_243],
    // (172 × 6 + 2,432 × 0.6 + 383 × 30) / 2
    [
      'long-prompts',
      { input: '3', output: '15' },
      [{ above: 2000, input: '6', output: '30', cache_read: '0.6' }],
      10_486,
    ],
  ])(
    'GET /api/pricing states the price by which calls are charged: %s',
    async (name, price, tiers, quota) => {
      const { data } = await pricing(VIC)
      expect(data.find((one) => one['model_name'] === name)).toMatchObject({ price, tiers })
      // The ratio of the group is 1.5.
      expect((await charged(name, 'vic'))?.quota).toBe(quota)
    },
  )
})
