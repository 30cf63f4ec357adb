import fc from 'fast-check'
import { expect, test } from 'vitest'
import { charge } from './charge.ts'
import { costOf, roundedCost } from './cost.ts'
import type { Decimal } from './decimal.ts'
import { type Price, rateOf } from './price.ts'
import { priceSetFrom, priceSetText } from './price-set.ts'
import type { TokenPrices } from './token-kinds.ts'
import type { PricedTool } from './tool-use.ts'
import type { Usage } from '@sluice/wire/usage'

const decimal: fc.Arbitrary<Decimal> = fc.oneof(
  { weight: 1, arbitrary: fc.constant({ digits: 0n, scale: 0 }) },
  {
    weight: 4,
    arbitrary: fc.record({
      digits: fc.bigInt({ min: 0n, max: 99_999n }),
      scale: fc.integer({ min: 3, max: 8 }),
    }),
  },
)

const ratios: fc.Arbitrary<Decimal> = fc.record({
  digits: fc.bigInt({ min: 0n, max: 999n }),
  scale: fc.integer({ min: 0, max: 4 }),
})

const tokens: fc.Arbitrary<TokenPrices> = fc.record({
  input: decimal,
  output: decimal,
  cache_read: decimal,
  cache_write_5m: decimal,
  cache_write_1h: decimal,
  audio_input: decimal,
  audio_output: decimal,
  image_input: decimal,
  image_output: decimal,
  audio_cache_read: decimal,
  image_cache_read: decimal,
})

const FREE = { digits: 0n, scale: 0 }
const FREE_TOKENS = fc
  .sample(tokens, 1)
  .map((one) => Object.fromEntries(Object.keys(one).map((key) => [key, FREE])))[0]

const price: fc.Arbitrary<Price> = fc.record({
  tokens: fc.oneof(tokens, fc.constant(FREE_TOKENS as unknown as TokenPrices)),
  tiers: fc
    .uniqueArray(fc.record({ above: fc.integer({ min: 1, max: 5_000 }), tokens }), {
      maxLength: 3,
      selector: ({ above }) => above,
    })
    .map((tiers) => tiers.toSorted((one, other) => one.above - other.above)),
  request: decimal,
  tools: fc.constant({}),
  characters: decimal,
  second: decimal,
  search_unit: decimal,
  image: fc.dictionary(fc.constantFrom('default', '1x1', '1x1/hd', '2x2'), decimal),
})

const count = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 3_000 }))
const usage: fc.Arbitrary<Usage> = fc
  .record({
    text: count,
    audioInput: count,
    imageInput: count,
    cached: count,
    audioCacheRead: count,
    imageCacheRead: count,
    cacheWrite5m: count,
    cacheWrite1h: count,
    written: count,
    audioOutput: count,
    imageOutput: count,
    webSearches: count,
    seconds: count,
    characters: count,
    images: fc.integer({ min: 0, max: 4 }),
    searchUnits: fc.integer({ min: 0, max: 400 }),
  })
  .map(({ text, cached, written, ...of }) => ({
    ...of,
    input: text + of.audioInput + of.imageInput,
    cacheRead: cached + of.audioCacheRead + of.imageCacheRead,
    output: written + of.audioOutput + of.imageOutput,
    reasoning: 0,
  }))

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
    price: decimal,
  }),
  { maxLength: 3 },
)

const form = fc.constantFrom({}, { size: '1x1' }, { size: '1x1', quality: 'hd' }, { size: '9x9' })

test('the lines of a cost, times the ratio and rounded once, are the charge, for any prices and usage', () => {
  fc.assert(
    fc.property(
      price,
      ratios,
      fc.constantFrom(1, 7, 500_000),
      usage,
      form,
      tools,
      (given, ratio, quotaPerUnit, used, image, uses) => {
        // Reads the price from the form in which it is stored.
        const set = priceSetFrom(priceSetText({ price: given, ratio, quotaPerUnit }))
        const cost = costOf(set.price, set.quotaPerUnit, used, image, uses)
        const charged = charge(rateOf(given, ratio, quotaPerUnit), used, image, uses)
        const rounded = roundedCost(cost, set.ratio)
        // The minimum charge is one unit.
        expect(rounded === 0 ? Math.min(charged, 1) : rounded).toBe(charged)
        if (rounded === 0 && charged === 1) expect(cost.lines).not.toEqual([])
      },
    ),
    { numRuns: 2_000 },
  )
})

test('cost lines name what was used, and the tier whose prices apply', () => {
  const at = (digits: bigint, scale = 0): Decimal => ({ digits, scale })
  const some = fc.sample(price, 1)[0] as Price
  const base = Object.fromEntries(
    Object.keys(some.tokens).map((key) => [key, at(3n)]),
  ) as unknown as TokenPrices
  const tiered: Price = {
    ...some,
    tokens: base,
    tiers: [{ above: 100, tokens: { ...base, input: at(6n) } }],
    request: FREE,
  }
  const nothing = fc
    .sample(usage, 1)
    .map((one) => Object.fromEntries(Object.keys(one).map((key) => [key, 0])))[0]
  const used = { ...(nothing as unknown as Usage), input: 200, output: 10 }
  const searches = { kind: 'web_search', count: 2, price: at(1n, 2) } as const
  expect(costOf(tiered, 500_000, used, {}, [searches])).toMatchObject({
    tierAbove: 100,
    lines: [
      { kind: 'input', count: 200, price: at(6n) },
      { kind: 'output', count: 10, price: at(3n) },
      { kind: 'web_search', count: 2, price: at(1n, 2) },
    ],
  })
})
