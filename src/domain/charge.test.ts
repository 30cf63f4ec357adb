import { NO_USAGE } from '@sluice/wire/usage'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lawRuns } from '../../test/runner/tier.ts'
import { decimals, tieredTokens, unitPrices, usages } from '../../test/generators/prices.ts'
import { chargeOfCall, costLinesOfCall, MAX_HOLD, maxCharge, roundedCost } from './charge.ts'
import { type Decimal, parseDecimal } from './decimal.ts'
import {
  chargeRateOf,
  FREE_PRICE,
  type ChargeRate,
  type Price,
  priceSetFrom,
  priceSetText,
  SINGLE_PRICE_UNITS,
} from './price.ts'
import { completeTokenPrices, type TokenPrices } from './token-kinds.ts'
import type { PricedTool } from './tool-use.ts'

const decimal = (text: string): Decimal => {
  const value = parseDecimal(text)
  if (!value) throw new Error(`${text} is no decimal`)
  return value
}

const tokens = (input: string, output: string, read = '0', write5m = '0', write1h = '0'): TokenPrices =>
  completeTokenPrices({
    input: decimal(input),
    output: decimal(output),
    cache_read: decimal(read),
    cache_write_5m: decimal(write5m),
    cache_write_1h: decimal(write1h),
    cache_write_12h: decimal(write1h),
  })

const price = (parts: Partial<Price>): Price => ({ ...FREE_PRICE, ...parts })

const ONE = decimal('1')

describe('a charge', () => {
  // 3 and 15 USD per million tokens at 500,000 units per USD: 1.5 and 7.5 units a token.
  const rate = chargeRateOf(price({ tokens: tokens('3', '15', '0.3', '3.75', '6') }), ONE, 500_000)

  test('a charge is price × usage × quota per unit', () => {
    expect(chargeOfCall(rate, { ...NO_USAGE, input: 1000, output: 100 })).toBe(2250)
  })

  test('a charge prices plain input, cache reads and cache writes separately', () => {
    const usage = { ...NO_USAGE, input: 10, cacheRead: 1000, cacheWrite5m: 100, cacheWrite1h: 10 }
    // 15 + 150 + 187.5 + 30 = 382.5, half away from zero
    expect(chargeOfCall(rate, usage)).toBe(383)
  })

  test('a charge prices cached audio and image tokens separately from cached text', () => {
    const cached = completeTokenPrices({
      ...tokens('3', '15', '0.3'),
      audio_cache_read: decimal('2'),
      image_cache_read: decimal('1'),
    })
    const media = chargeRateOf(price({ tokens: cached }), ONE, 500_000)
    const usage = { ...NO_USAGE, cacheRead: 1000, audioCacheRead: 100, imageCacheRead: 200 }
    expect(chargeOfCall(media, usage)).toBe(700 * 0.15 + 100 + 200 * 0.5)
    expect(chargeOfCall(rate, usage)).toBe(150)
  })

  test('a charge is rounded once, half away from zero', () => {
    expect(chargeOfCall(rate, { ...NO_USAGE, input: 1 })).toBe(2)
    expect(chargeOfCall(rate, { ...NO_USAGE, input: 3 })).toBe(5)
  })

  test('a charge is at least one quota unit if anything with a price was used', () => {
    const tiny = chargeRateOf(price({ tokens: tokens('0.000001', '0') }), ONE, 500_000)
    expect(chargeOfCall(tiny, { ...NO_USAGE, input: 1 })).toBe(1)
    expect(chargeOfCall(tiny, NO_USAGE)).toBe(0)
    expect(chargeOfCall(tiny, { ...NO_USAGE, output: 100 })).toBe(1)
  })

  test('a charge is free of binary rounding errors: 0.1 + 0.2 is 0.3', () => {
    const exact = chargeRateOf(price({ tokens: tokens('0.1', '0.2') }), decimal('0.7'), 500_000)
    // (1,000,000 × 0.1 + 1,000,000 × 0.2) USD/M × 0.7 × 500,000 = 105,000
    expect(chargeOfCall(exact, { ...NO_USAGE, input: 1_000_000, output: 1_000_000 })).toBe(105_000)
  })

  test("a charge uses one price tier for the whole call once the prompt is larger than the tier's threshold", () => {
    const tiered = chargeRateOf(
      price({
        tokens: tokens('3', '15', '0.3'),
        tiers: [{ above: 200_000, tokens: tokens('6', '22.5', '0.6') }],
      }),
      ONE,
      500_000,
    )
    expect(chargeOfCall(tiered, { ...NO_USAGE, input: 200_000, output: 2 })).toBe(300_015)
    expect(chargeOfCall(tiered, { ...NO_USAGE, input: 200_000, cacheRead: 10, output: 2 })).toBe(600_026)
  })

  test('a charge includes the price per call and tool uses, whose prices may have more decimal places than others', () => {
    const rerank = chargeRateOf(price({ request: decimal('0.002') }), ONE, 500_000)
    const search = { kind: 'web_search', count: 3, price: decimal('0.01') } as const
    expect(chargeOfCall(rerank, NO_USAGE, {}, [search])).toBe(1000 + 15_000)
    const half = { ...search, count: 1, price: decimal('0.000001') }
    // 1,000 + 0.5, rounded away from zero
    expect(chargeOfCall(rerank, NO_USAGE, {}, [half])).toBe(1001)
    const drawn = { kind: 'image_generation_output', count: 1056, price: decimal('40') } as const
    // 1,056 tokens × 40 USD a million
    expect(chargeOfCall(rerank, NO_USAGE, {}, [search, drawn])).toBe(1000 + 15_000 + 21_120)
  })

  test('a charge prices audio and image tokens separately from text where the model has prices for them', () => {
    const prices = { ...tokens('2.5', '10', '0.25'), audio_input: decimal('6'), image_output: decimal('40') }
    const spoken = chargeRateOf(price({ tokens: prices }), ONE, 500_000)
    const usage = { ...NO_USAGE, input: 1000, audioInput: 900, output: 100, cacheRead: 50, audioOutput: 20 }
    // 100 × 1.25 + 900 × 3 + 50 × 0.125 + 100 × 5
    expect(chargeOfCall(spoken, usage)).toBe(3331)
    expect(chargeOfCall(spoken, { ...NO_USAGE, imageInput: 10, input: 10, output: 7, imageOutput: 5 })).toBe(
      Math.round(12.5 + 2 * 5 + 5 * 20),
    )
  })

  test.each([
    [{ seconds: 61 }, {}, { second: decimal('0.0001') }, 3050],
    [{ characters: 4096 }, {}, { characters: decimal('15') }, 30_720],
    [{ images: 3 }, {}, { image: { default: decimal('0.04') } }, 60_000],
    [{ images: 1 }, { size: '1024x1024', quality: 'hd' }, {}, 40_000],
    [{ images: 2 }, { size: '1024x1024', quality: 'standard' }, {}, 40_000],
    [{ images: 1 }, { size: '9x9' }, {}, 10_000],
    [{ images: 1 }, {}, {}, 10_000],
    [{ images: 1 }, { size: 'constructor' }, {}, 10_000],
    [{ images: 1 }, { size: '9x9' }, { image: { '1x1': decimal('0.01'), '2x2': decimal('0.2') } }, 100_000],
  ])(
    "a chargeOfCall prices the usage %j at the price for the request's size and quality %j",
    (used, form, parts, quota) => {
      const image = {
        '1024x1024': decimal('0.04'),
        '1024x1024/hd': decimal('0.08'),
        default: decimal('0.02'),
      }
      const rate = chargeRateOf(price({ image, ...parts }), ONE, 500_000)
      expect(chargeOfCall(rate, { ...NO_USAGE, ...used }, form)).toBe(quota)
      expect(rate.free).toBe(false)
    },
  )

  test('a charge is by tokens if the provider reports them and they have a price, otherwise by seconds', () => {
    const both = chargeRateOf(price({ tokens: tokens('2.5', '10'), second: decimal('0.0001') }), ONE, 500_000)
    expect(chargeOfCall(both, { ...NO_USAGE, input: 100, output: 10, seconds: 60 })).toBe(175)
    expect(chargeOfCall(both, { ...NO_USAGE, seconds: 60 })).toBe(3000)
    const measured = chargeRateOf(price({ second: decimal('0.0001') }), ONE, 500_000)
    expect(chargeOfCall(measured, { ...NO_USAGE, input: 100, output: 10, seconds: 60 })).toBe(3000)
  })

  test('a charge throws if it exceeds the safe integers', () => {
    const dear = chargeRateOf(price({ tokens: tokens('1000000000', '0') }), ONE, 500_000)
    expect(() => chargeOfCall(dear, { ...NO_USAGE, input: 1_000_000_000 })).toThrow(RangeError)
  })
})

describe('the maximum cost of a call', () => {
  test('the maximum cost of a call prices the prompt at its highest rate, including cache writes', () => {
    const rate = chargeRateOf(price({ tokens: tokens('3', '15', '0.3', '3.75', '6') }), ONE, 500_000)
    expect(maxCharge(rate, { prompt: 100, output: 10 })).toBe(300 + 75)
  })

  test('the maximum cost of a call takes into account only price tiers that the prompt may reach', () => {
    const rate = chargeRateOf(
      price({ tokens: tokens('3', '15'), tiers: [{ above: 1000, tokens: tokens('6', '30') }] }),
      ONE,
      500_000,
    )
    expect(maxCharge(rate, { prompt: 1000, output: 10 })).toBe(1500 + 75)
    expect(maxCharge(rate, { prompt: 1001, output: 10 })).toBe(3003 + 150)
  })

  test('the maximum cost of a call takes into account a more expensive lower price tier, as the prompt may be shorter', () => {
    const rate = chargeRateOf(
      price({
        tokens: tokens('3', '15'),
        tiers: [
          { above: 1000, tokens: tokens('2', '30') },
          { above: 2000, tokens: tokens('1', '10') },
        ],
      }),
      ONE,
      500_000,
    )
    expect(maxCharge(rate, { prompt: 1001, output: 10 })).toBe(1502 + 150)
    expect(maxCharge(rate, { prompt: 2002, output: 10 })).toBe(3003 + 150)
  })
})

test('the maximum cost of an image call is by output tokens or by number of images, whichever is larger', () => {
  const image = { '1x1': decimal('0.04'), default: decimal('0.02') }
  const prices = { ...tokens('5', '10'), image_output: decimal('40') }
  const rate = chargeRateOf(price({ tokens: prices, image }), ONE, 500_000)
  expect(maxCharge(rate, { prompt: 10, output: 0, images: 2 })).toBe(40_000)
  expect(maxCharge(rate, { prompt: 10, output: 10_000, images: 2 })).toBe(50_025)
  expect(maxCharge(rate, { prompt: 10, output: 10_000, images: 2, hasMedia: true })).toBe(200_025)
})

test('the maximum cost of a call is bounded, however much the request allows', () => {
  const rate = chargeRateOf(price({ tokens: tokens('3', '15') }), decimal('1000000'), 500_000)
  for (const output of [1e15, Number.MAX_SAFE_INTEGER, Number.MAX_VALUE])
    expect(maxCharge(rate, { prompt: 10, output })).toBe(MAX_HOLD)
})

test('the rate of a call is free only if its model has no price above 0 or the group ratio is 0', () => {
  expect(chargeRateOf(price({}), ONE, 500_000).free).toBe(true)
  expect(chargeRateOf(price({ request: decimal('0.1') }), ONE, 500_000).free).toBe(false)
  expect(chargeRateOf(price({ tokens: tokens('3', '15') }), decimal('0'), 500_000).free).toBe(true)
})

test('the rate of a call is unchanged after it was stored as text and read back', () => {
  const tiers = [{ above: 1_000, tokens: tokens('6', '22.5') }]
  const rate = chargeRateOf(
    price({
      tokens: tokens('3', '15', '0.3'),
      tiers,
      request: decimal('0.01'),
      image: { '1x1/hd': decimal('0.3') },
    }),
    decimal('0.7'),
    500_000,
  )
  const { price: stored, ratio, quotaPerUnit } = priceSetFrom(priceSetText(rate))
  expect(chargeRateOf(stored, ratio, quotaPerUnit)).toEqual(rate)
})

test('a price set that was stored before a unit had a price is read with 0 for that unit', () => {
  const rate = chargeRateOf(price({ tokens: tokens('3', '15') }), ONE, 500_000)
  const stored = JSON.parse(priceSetText(rate)) as { price: Record<string, unknown> }
  for (const { name } of SINGLE_PRICE_UNITS) delete stored.price[name]
  const { price: read, ratio, quotaPerUnit } = priceSetFrom(JSON.stringify(stored))
  expect(chargeRateOf(read, ratio, quotaPerUnit)).toEqual(rate)
})

test('a hold is at least one quota unit if the model has any price, and 0 if the model is free', () => {
  const cheap = chargeRateOf(price({ tokens: tokens('0.001', '0') }), ONE, 500_000)
  expect(maxCharge(cheap, { prompt: 100, output: 10 })).toBe(1)
  expect(maxCharge(cheap, { prompt: 0, output: 0 })).toBe(1)
  expect(maxCharge(chargeRateOf(FREE_PRICE, ONE, 500_000), { prompt: 100, output: 10 })).toBe(0)
})

test('audio seconds and images are charged once, even if they are also itemized, and whether or not tokens have prices', () => {
  const [second, each] = [decimal('0.002'), decimal('0.04')]
  const media = [
    { kind: 'second', count: 3, price: second },
    { kind: 'image', count: 2, price: each },
  ] as const
  const usage = { ...NO_USAGE, input: 1_000, seconds: 3, images: 2 }
  const measured = price({ second, image: { default: each } })
  // 3 × 1,000 and 2 × 20,000 units; 1,000 tokens at 1.5.
  expect(chargeOfCall(chargeRateOf(measured, ONE, 500_000), usage, {}, media)).toBe(43_000)
  const both = chargeRateOf({ ...measured, tokens: tokens('3', '15') }, ONE, 500_000)
  expect(chargeOfCall(both, usage, {}, media)).toBe(44_500)
})

const amount = unitPrices(3)
const ratios = decimals({ min: 0n, max: 999n }, { min: 0, max: 4 })
const tokensAndTiers = tieredTokens(amount, 3)

const units = fc.record({
  request: amount,
  tools: fc.constant({}),
  characters: amount,
  second: amount,
  search_unit: amount,
  image: fc.dictionary(fc.constantFrom('default', '1x1', '1x1/hd', '2x2'), amount),
  service: fc.dictionary(fc.constantFrom('flex', 'fast', 'own'), fc.oneof(ratios, tokensAndTiers)),
  regions: fc.dictionary(fc.constantFrom('us', 'eu'), ratios),
})

const prices: fc.Arbitrary<Price> = fc
  .tuple(tokensAndTiers, units)
  .map(([tiered, others]) => ({ ...tiered, ...others }))

const tools: fc.Arbitrary<PricedTool[]> = fc.array(
  fc.record({
    kind: fc.constantFrom(
      'web_search' as const,
      'code_interpreter' as const,
      'image_generation_output' as const,
      'second' as const,
      'image' as const,
    ),
    count: fc.integer({ min: 1, max: 3_000 }),
    price: amount,
  }),
  { maxLength: 3 },
)

const form = fc.constantFrom({}, { size: '1x1' }, { size: '1x1', quality: 'hd' }, { size: '9x9' })

test('the itemized cost lines of a call, times the ratio and rounded once, equal its charge, for any prices and usage', () => {
  fc.assert(
    fc.property(
      prices,
      ratios,
      fc.constantFrom(1, 7, 500_000),
      usages,
      form,
      tools,
      (given, ratio, quotaPerUnit, used, image, uses) => {
        // Reads the price from the form in which it is stored.
        const set = priceSetFrom(priceSetText({ price: given, ratio, quotaPerUnit }))
        const cost = costLinesOfCall(set.price, set.quotaPerUnit, used, image, uses)
        const charged = chargeOfCall(chargeRateOf(given, ratio, quotaPerUnit), used, image, uses)
        const rounded = roundedCost(cost, set.ratio)
        // The minimum charge is one unit.
        expect(rounded === 0 ? Math.min(charged, 1) : rounded).toBe(charged)
        if (rounded === 0 && charged === 1) expect(cost.lines).not.toEqual([])
      },
    ),
    { numRuns: lawRuns(5_000) },
  )
})

test('calls of text are charged as all others, for any prices and usage', () => {
  const count = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 200_000 }), fc.maxSafeNat())
  const text = fc.record({ input: count, output: count }).map((counts) => ({ ...NO_USAGE, ...counts }))
  const flat = prices.map((one) => ({ ...one, tiers: [] }))
  const withoutRequest = flat.map((one) => ({ ...one, request: decimal('0') }))
  fc.assert(
    fc.property(
      fc.oneof(withoutRequest, flat, prices),
      ratios,
      fc.constantFrom(1, 7, 500_000),
      fc.oneof(text, usages),
      (given, ratio, quotaPerUnit, used) => {
        const rate = chargeRateOf(given, ratio, quotaPerUnit)
        const charge = (by: ChargeRate) => {
          try {
            return chargeOfCall(by, used)
          } catch (error) {
            return String(error)
          }
        }
        expect(charge(rate)).toBe(charge({ ...rate, text: undefined }))
      },
    ),
    { numRuns: lawRuns(5_000) },
  )
})

test('only calls that used nothing but text are charged by the prices of text', () => {
  const all = Object.keys(FREE_PRICE.tokens).map((name, at) => [name, decimal(String(at + 1))])
  const units = Object.fromEntries(SINGLE_PRICE_UNITS.map(({ name }) => [name, decimal('1')]))
  const given = [
    price({ tokens: Object.fromEntries(all) as TokenPrices }),
    price({ tokens: FREE_PRICE.tokens, ...units, image: { default: decimal('1') } }),
  ]
  for (const one of given) {
    const rate = chargeRateOf(one, ONE, 500_000)
    expect(rate.text).toBeDefined()
    for (const name of Object.keys(NO_USAGE) as (keyof typeof NO_USAGE)[]) {
      const usage = { ...NO_USAGE, input: 1_000, output: 1_000, [name]: 500 }
      expect(chargeOfCall(rate, usage), name).toBe(chargeOfCall({ ...rate, text: undefined }, usage))
    }
  }
})
