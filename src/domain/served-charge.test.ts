import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Usage } from '@sluice/wire/usage'
import { channelOf } from '../../test/samples/channel.ts'
import { decimals, tieredTokens, unitPrices, usages } from '../../test/generators/prices.ts'
import { lawRuns } from '../../test/runner/tier.ts'
import { chargeOfCall } from './charge.ts'
import type { Decimal } from './decimal.ts'
import { FREE_PRICE, type Price, chargeRateOf, type ServicePrice, type TieredTokenPrices } from './price.ts'
import { serviceRate } from './service-rate.ts'
import type { TokenPrices } from './token-kinds.ts'
import type { PricedTool } from './tool-use.ts'

/** A fraction of integers, computed without the code under test. */
interface Fraction {
  readonly top: bigint
  readonly bottom: bigint
}

const fraction = ({ digits, scale }: Decimal): Fraction => ({ top: digits, bottom: 10n ** BigInt(scale) })
const times = (one: Fraction, other: Fraction): Fraction => ({
  top: one.top * other.top,
  bottom: one.bottom * other.bottom,
})
const plus = (one: Fraction, other: Fraction): Fraction => ({
  top: one.top * other.bottom + other.top * one.bottom,
  bottom: one.bottom * other.bottom,
})
const ZERO: Fraction = { top: 0n, bottom: 1n }
const ONE: Fraction = { top: 1n, bottom: 1n }
const of = (count: number): Fraction => ({ top: BigInt(count), bottom: 1n })
const MILLIONTH: Fraction = { top: 1n, bottom: 1_000_000n }
const QUOTA_PER_UNIT = 500_000

const amount = unitPrices(2)
const factor = decimals({ min: 1n, max: 9_999n }, { min: 0, max: 4 })
const tiered = tieredTokens(amount, 2)
const prices: fc.Arbitrary<Price> = fc
  .record({
    own: tiered,
    isPerToken: fc.boolean(),
    request: amount,
    second: amount,
    characters: amount,
    search_unit: amount,
    image: amount,
    service: fc.dictionary(
      fc.constantFrom('flex', 'fast', 'batch', 'own'),
      fc.oneof<fc.Arbitrary<ServicePrice>[]>(factor, tiered),
    ),
    regions: fc.dictionary(fc.constantFrom('us', 'eu'), factor),
  })
  .map(({ own, isPerToken, image, ...others }) => ({
    ...FREE_PRICE,
    ...(isPerToken && own),
    ...others,
    image: { default: image },
  }))

const tools: fc.Arbitrary<PricedTool[]> = fc.array(
  fc.record({
    kind: fc.constantFrom('web_search' as const, 'code_interpreter' as const, 'google_search' as const),
    count: fc.integer({ min: 1, max: 50 }),
    price: amount,
  }),
  { maxLength: 3 },
)

/** The hosts of vendors, with their defaults as docs/configuration.md states them, and a host without any. */
const VENDORS = {
  'https://api.openai.com/v1': { flex: [1, 2], batch: [1, 2], fast: [2, 1], ultrafast: [6, 1] },
  'https://api.anthropic.com/v1': { batch: [1, 2], fast: [2, 1] },
  'https://generativelanguage.googleapis.com/v1beta': { flex: [1, 2], batch: [1, 2], fast: [9, 5] },
  'http://127.0.0.1:9': {},
} as const satisfies Record<string, Record<string, readonly [number, number]>>
type Host = keyof typeof VENDORS

const served = fc.record({
  host: fc.constantFrom(...(Object.keys(VENDORS) as Host[])),
  tier: fc.constantFrom('standard', 'flex', 'fast', 'batch', 'ultrafast', 'own', 'reserved', 'provisioned'),
  region: fc.constantFrom('', 'us', 'eu', 'asia'),
})

/** The prices of tokens of a tier, and the number that multiplies them; undefined if the tier has no price. */
function tierPrice(
  { service, ...price }: Price,
  host: Host,
  tier: string,
): [TieredTokenPrices, Fraction] | undefined {
  const own = service[tier]
  if (own !== undefined) return 'digits' in own ? [price, fraction(own)] : [own, ONE]
  if (tier === 'standard' || tier === 'reserved') return [price, ONE]
  if (tier === 'provisioned') return [price, ZERO]
  const listed = (VENDORS[host] as Record<string, readonly [number, number]>)[tier]
  return listed && [price, { top: BigInt(listed[0]), bottom: BigInt(listed[1]) }]
}

/** Whether the tier leaves the price of a kind as it is: in Google's batches, that of cached tokens. */
function isKept({ service }: Price, host: Host, tier: string, kind: string): boolean {
  const isGoogle = host === 'https://generativelanguage.googleapis.com/v1beta'
  return isGoogle && tier === 'batch' && service[tier] === undefined && kind.endsWith('cache_read')
}

function regionFactor({ regions }: Price, host: Host, region: string): Fraction {
  if (Object.keys(regions).length > 0) {
    const stated = regions[region]
    return stated ? fraction(stated) : ONE
  }
  return host === 'https://api.anthropic.com/v1' && region === 'us' ? { top: 11n, bottom: 10n } : ONE
}

/** Tokens by the price that applies to them: what is part of another count is subtracted from it. */
function tokensOf(used: Usage): Record<keyof TokenPrices, number> {
  const { audioCacheRead = 0, imageCacheRead = 0 } = used
  return {
    input: used.input - used.audioInput - used.imageInput,
    output: used.output - used.audioOutput - used.imageOutput,
    cache_read: used.cacheRead - audioCacheRead - imageCacheRead,
    cache_write_5m: used.cacheWrite5m,
    cache_write_1h: used.cacheWrite1h,
    cache_write_30m: used.cacheWrite30m,
    cache_write_12h: used.cacheWrite12h,
    audio_input: used.audioInput,
    audio_output: used.audioOutput,
    image_input: used.imageInput,
    image_output: used.imageOutput,
    audio_cache_read: audioCacheRead,
    image_cache_read: imageCacheRead,
  }
}

/** The sum in USD: of tokens, else of the units that are measured, and of tools and the call itself. */
function usdOf(
  price: Price,
  tokens: TieredTokenPrices,
  factorsOf: (kind: string) => readonly Fraction[],
  used: Usage,
  uses: PricedTool[],
) {
  const prompt =
    used.input +
    used.cacheRead +
    used.cacheWrite5m +
    used.cacheWrite1h +
    used.cacheWrite30m +
    used.cacheWrite12h
  let applied = tokens.tokens
  for (const { above, tokens: larger } of tokens.tiers) if (prompt > above) applied = larger
  let sum = ZERO
  for (const [kind, number] of Object.entries(tokensOf(used))) {
    const each = [of(number), fraction(applied[kind as keyof TokenPrices]), MILLIONTH, ...factorsOf(kind)]
    sum = plus(sum, each.reduce(times))
  }
  if (sum.top === 0n) {
    sum = plus(sum, times(of(used.seconds), fraction(price.second)))
    sum = plus(sum, times(times(of(used.characters), MILLIONTH), fraction(price.characters)))
    sum = plus(sum, times(of(used.searchUnits), fraction(price.search_unit)))
    sum = plus(sum, times(of(used.images), fraction(price.image['default'] as Decimal)))
  }
  for (const { count: number, price: each } of uses) sum = plus(sum, times(of(number), fraction(each)))
  return plus(sum, fraction(price.request))
}

test('a charge is Σ tokens × price × tier × region, units, tools and the call, × ratio, rounded once, whatever the order', () => {
  let compared = 0
  fc.assert(
    fc.property(
      prices,
      served,
      factor,
      usages,
      tools,
      fc.boolean(),
      (price, at, ratio, used, uses, isReversed) => {
        const found = tierPrice(price, at.host, at.tier)
        fc.pre(found !== undefined)
        const [tokens, tier] = found
        const factorsOf = (kind: string): Fraction[] => {
          const ofTier = isKept(price, at.host, at.tier, kind) ? ONE : tier
          const factors = [ofTier, regionFactor(price, at.host, at.region)]
          return isReversed ? factors.toReversed() : factors
        }
        const usd = usdOf(price, tokens, factorsOf, used, uses)
        const { top, bottom } = [usd, fraction(ratio), of(QUOTA_PER_UNIT)].reduce(times)
        const rounded = Number((2n * top + bottom) / (2n * bottom))
        // The minimum of a charge and its maximum are other tests.
        fc.pre(rounded > 0 && Number.isSafeInteger(rounded))
        compared++
        const { rate } = serviceRate(
          chargeRateOf(price, ratio, QUOTA_PER_UNIT),
          channelOf({ base_url: at.host }),
          'a-model',
          { tier: at.tier, region: at.region },
        )
        expect(chargeOfCall(rate, used, {}, uses)).toBe(rounded)
      },
    ),
    { numRuns: lawRuns(5_000) },
  )
  expect(compared).toBeGreaterThan(100)
})
