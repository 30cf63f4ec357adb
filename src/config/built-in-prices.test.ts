import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseDecimal } from '../domain/decimal.ts'
import {
  builtInPrices,
  chargeablePrice,
  currentPrice,
  literalNamesOfRule,
  matchesModel,
  PRICE_DATA,
  unchargedPriceKeys,
  withHyphenatedDate,
} from './built-in-prices.ts'
import { VENDORS } from './vendors.ts'

const prices = builtInPrices()
const usd = (text: string) => parseDecimal(text)

/** Converts to a number, so that `1.10` equals `1.1`. */
function plain(value: { digits: bigint; scale: number } | undefined): number | undefined {
  return value && Number(value.digits) / 10 ** value.scale
}

describe('the built-in prices', () => {
  test.each([
    ['gpt-4o-mini', 'openai'],
    ['gpt-4o-mini-2024-07-18', 'openai'],
    ['claude-sonnet-4-5', 'anthropic'],
    ['claude-sonnet-4-5-20250929', 'anthropic'],
    ['gemini-2.5-pro', 'google'],
    ['mistral-large-latest', 'mistral'],
    ['deepseek-chat', 'deepseek'],
    ['grok-4', 'x-ai'],
    ['command-r-plus', 'cohere'],
    ['rerank-english-v3.0', 'cohere'],
    ['sonar-pro', 'perplexity'],
    ['llama-3.3-70b-versatile', 'groq'],
    ['anthropic/claude-sonnet-4.5', 'openrouter'],
  ])('the model %s is one of the vendor %s', (name, vendor) => {
    expect(prices.get(name)?.vendor).toBe(vendor)
  })

  test('the built-in price of a model is that of the vendor that serves it, or of another one if that vendor does not list it', () => {
    expect(prices.get('gpt-oss-120b', 'cerebras')?.vendor).toBe('cerebras')
    expect(prices.get('gpt-4o-mini', 'nobody')?.vendor).toBe('openai')
  })

  test('there are no built-in prices for model names that are not listed', () => {
    expect(prices.get('nobody-knows-this')).toBeUndefined()
    expect(prices.get('')).toBeUndefined()
    expect(prices.get(`gpt-4o-mini${'x'.repeat(1_000_000)}`)).toBeUndefined()
  })

  test('the built-in prices are the same object for the same model, so that derived values can be cached', () => {
    expect(prices.get('gpt-4o-mini')?.price).toBe(prices.get('gpt-4o-mini')?.price)
    expect(Object.isFrozen(prices.get('gpt-4o-mini')?.price)).toBe(true)
  })

  test('the built-in prices of claude-sonnet-4-5 are those that its vendor publishes', () => {
    expect(prices.get('claude-sonnet-4-5')?.price).toMatchObject({
      tokens: {
        input: usd('3'),
        output: usd('15'),
        cache_read: usd('0.3'),
        cache_write_5m: usd('3.75'),
        cache_write_1h: usd('6'),
      },
      tiers: [{ above: 200_000, tokens: { input: usd('6'), output: usd('22.5'), cache_read: usd('0.6') } }],
    })
    expect(plain(prices.get('claude-sonnet-4-5')?.price?.tools.web_search)).toBe(0.01)
  })

  test('the built-in price of a reranker is per search unit, and there is no additional price per call', () => {
    const { request, search_unit } = prices.get('rerank-english-v3.0')?.price ?? {}
    expect([plain(request), plain(search_unit)]).toEqual([0, 0.002])
  })

  test.each([
    ['whisper-1', { second: 0.0001 }],
    ['whisper-large-v3-turbo', { second: 0.000011111111111111 }],
    ['gpt-4o-transcribe', { input: 2.5, audio_input: 6, output: 10, second: 0.0001 }],
    ['tts-1', { characters: 15 }],
    ['tts-1-hd-1106', { characters: 30 }],
    ['gpt-4o-mini-tts', { input: 0.6, output: 12, second: 0.00025 }],
    ['gpt-image-1.5', { input: 5, image_input: 8, output: 10, image_output: 32 }],
    ['gpt-audio', { audio_input: 32, audio_output: 64 }],
    ['text-embedding-3-small', { input: 0.02, output: 0 }],
    ['gemini-embedding-001', { input: 0.15 }],
  ])('the built-in prices of %s are %j', (name, expected) => {
    const { tokens, ...price } = prices.get(name)?.price ?? {}
    const seen = Object.keys(expected).map((kind) => [kind, plain({ ...price, ...tokens }[kind as 'second'])])
    expect(Object.fromEntries(seen)).toEqual(expected)
  })

  test('the built-in prices of images are by size and quality', () => {
    const image = prices.get('dall-e-3')?.price?.image ?? {}
    expect(plain(image['1024x1024'])).toBe(0.04)
    expect(plain(image['1792x1024/hd'])).toBe(0.12)
    expect(plain(prices.get('gpt-image-1')?.price?.image['1024x1024/medium'])).toBe(0.042)
    expect(prices.get('dall-e-3')?.vendor).toBe('openai')
  })

  test.each(VENDORS.flatMap(({ id, unpriced = [] }) => unpriced.map((name) => [name, id] as const)))(
    'there is no built-in price of %s, because no page of a vendor states it',
    (name, vendor) => {
      expect(prices.get(name, vendor)).toBeUndefined()
    },
  )

  test('the built-in prices accept any name without an error', () => {
    fc.assert(
      fc.property(fc.string(), (name) => {
        prices.get(name)
      }),
    )
  })

  test('the source of the price data names the version of the package that is installed', () => {
    const { dependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
    expect(PRICE_DATA.source).toBe(`@pydantic/genai-prices ${dependencies['@pydantic/genai-prices']}`)
  })

  test('the built-in prices have a version that is the same for the same data', () => {
    expect(builtInPrices().version).toBe(prices.version)
  })

  const priced = VENDORS.filter(({ unpriced }) => unpriced === undefined)
  test.each(priced.map((vendor) => [vendor.id, vendor.protocol, vendor] as const))(
    "the models that a vendor's API key makes available can be called and have a price: %s (%s)",
    (id, _, vendor) => {
      const names = prices.namesOf(vendor)
      expect(names.length).toBeGreaterThan(0)
      expect(new Set(names).size).toBe(names.length)
      for (const name of names)
        expect(prices.get(name, id)).toMatchObject({ vendor: id, price: expect.anything() })
    },
  )
})

describe('prices in the data', () => {
  test('prices in the price data are per million tokens, per thousand calls and per thousand searches', () => {
    const price = chargeablePrice({
      input_mtok: 1.5,
      output_mtok: 2,
      requests_kcount: 12,
      web_searches_kcount: 5,
    })
    expect(price?.tokens.input).toEqual(usd('1.5'))
    expect([plain(price?.request), plain(price?.tools.web_search)]).toEqual([0.012, 0.005])
  })

  test('prices missing in the price data follow from the input price, except that of a web search', () => {
    const price = chargeablePrice({ input_mtok: 0.15, output_mtok: 0.6 })
    expect(price?.tokens).toMatchObject({
      input: { digits: 15n, scale: 2 },
      output: { digits: 6n, scale: 1 },
      cache_read: { digits: 15n, scale: 3 },
      cache_write_5m: { digits: 1875n, scale: 4 },
      cache_write_1h: { digits: 30n, scale: 2 },
    })
    expect([plain(price?.request), price?.tools]).toEqual([0, {}])
  })

  test('tiers in the price data apply to prompts above their start, and a kind of tokens without tiers has one price in every tier', () => {
    const price = chargeablePrice({
      input_mtok: {
        base: 1,
        tiers: [
          { start: 100, price: 2 },
          { start: 200, price: 3 },
        ],
      },
      output_mtok: { base: 10, tiers: [{ start: 200, price: 30 }] },
      cache_read_mtok: 0.5,
    })
    const seen = price?.tiers.map(({ above, tokens }) => [
      above,
      ...[tokens.input, tokens.output, tokens.cache_read, tokens.cache_write_1h].map(plain),
    ])
    expect(seen).toEqual([
      [100, 2, 10, 0.5, 4],
      [200, 3, 30, 0.5, 6],
    ])
  })

  test('price data without any kind that the gateway charges give no price', () => {
    expect(chargeablePrice({})).toBeUndefined()
    expect(chargeablePrice({ input_document_kpages: 1 })).toBeUndefined()
  })

  test("the price data's kinds of prices that the gateway does not charge can be listed by name", () => {
    expect(
      unchargedPriceKeys({ input_mtok: 1, output_mtok: 1, input_video_mtok: 3, audio_hours: 1 }),
    ).toEqual(['input_video_mtok'])
  })
})

describe('dated prices', () => {
  const dated = [
    { prices: { input_mtok: 1 } },
    { constraint: { type: 'start_date' as const, start_date: '2026-06-01' }, prices: { input_mtok: 2 } },
    {
      constraint: { type: 'time_of_date' as const, start_time: '22:00:00Z', end_time: '02:00:00Z' },
      prices: { input_mtok: 3 },
    },
  ]
  test.each([
    ['2026-05-31T23:59:59Z', 3],
    ['2026-05-31T12:00:00Z', 1],
    ['2026-06-01T12:00:00Z', 2],
    ['2026-06-01T22:00:00Z', 3],
    ['2026-06-02T01:59:59Z', 3],
    ['2026-06-02T02:00:00Z', 2],
  ])('the dated input price at %s is %d', (time, expected) => {
    expect(currentPrice(dated, new Date(time))).toEqual({ input_mtok: expected })
  })

  test('a built-in price with a start date applies from this date on while the gateway runs', () => {
    let now = new Date('2026-05-01T12:00:00Z')
    const table = builtInPrices(() => now)
    const before = table.get('deepseek-v4-pro')?.price
    now = new Date('2026-10-01T12:00:00Z')
    const after = table.get('deepseek-v4-pro')?.price
    expect([plain(before?.tokens.input), plain(after?.tokens.input)]).toEqual([0.435, 0.66])
  })
})

describe('rules for names', () => {
  test.each([
    [{ equals: 'GPT-5' }, 'gpt-5', true],
    [{ equals: 'gpt-5' }, 'gpt-5-mini', false],
    [{ starts_with: 'gpt-' }, 'GPT-5', true],
    [{ ends_with: ':free' }, 'a:free', true],
    [{ contains: 'claude' }, 'us.Claude-x', true],
    [{ regex: '^o[134]$' }, 'o3', true],
    [{ regex: '^o[134]$' }, 'O3', false],
    [{ or: [{ equals: 'a' }, { equals: 'b' }] }, 'b', true],
    [{ and: [{ starts_with: 'a' }, { ends_with: 'z' }] }, 'a-y', false],
  ])('the rule %j of the price data matches the model name %s: %s', (rule, name, expected) => {
    expect(matchesModel(rule, name)).toBe(expected)
  })

  test('rules of the price data that match exact names list these names', () => {
    expect(
      literalNamesOfRule({ or: [{ equals: 'a' }, { starts_with: 'b' }, { or: [{ equals: 'c' }] }] }),
    ).toEqual(['a', 'c'])
    expect(literalNamesOfRule({ and: [{ equals: 'a' }] })).toEqual([])
  })

  test('rules of the price data match a date in a model name with and without hyphens', () => {
    expect(withHyphenatedDate('m-20250929')).toBe('m-2025-09-29')
    expect(withHyphenatedDate('m-20251340')).toBe('m-20251340')
  })
})
