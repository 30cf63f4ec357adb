import { NO_USAGE, type Usage } from '@sluice/wire/usage'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lawRuns } from '../../test/runner/tier.ts'
import { cacheSavings, chargeOfCall } from './charge.ts'
import { type Decimal, ONE, parseDecimal } from './decimal.ts'
import { FREE_PRICE, chargeRateOf } from './price.ts'
import { completeTokenPrices } from './token-kinds.ts'

const decimal = (text: string): Decimal => parseDecimal(text)!

const PRICES = completeTokenPrices({
  input: decimal('3'),
  output: decimal('15'),
  cache_read: decimal('0.3'),
  cache_write_5m: decimal('3.75'),
  cache_write_1h: decimal('6'),
  audio_input: decimal('10'),
  audio_cache_read: decimal('2'),
})
const RATE = chargeRateOf({ ...FREE_PRICE, tokens: PRICES }, ONE, 500_000)

describe('what a prompt cache saves and costs', () => {
  test('a token read from a prompt cache saves the difference between the input price and the cache read price', () => {
    // 1,000 tokens × (3 − 0.3) USD per million × 500,000 units per USD
    expect(cacheSavings(RATE, { ...NO_USAGE, cacheRead: 1000 })).toEqual({
      cache_saved: 1350,
      cache_surcharge: 0,
    })
  })

  test('a token written to a prompt cache costs the cache write price less the input price as a surcharge', () => {
    const usage = { ...NO_USAGE, cacheWrite5m: 1000, cacheWrite1h: 100 }
    // 1,000 × 0.75 and 100 × 3 USD per million × 500,000 units per USD
    expect(cacheSavings(RATE, usage)).toEqual({ cache_saved: 0, cache_surcharge: 525 })
  })

  test('a call that reads from and writes to a prompt cache has both a saving and a surcharge', () => {
    expect(cacheSavings(RATE, { ...NO_USAGE, cacheRead: 100, cacheWrite5m: 100 })).toEqual({
      cache_saved: 135,
      cache_surcharge: 38,
    })
  })

  test('the prompt cache saving of cached audio tokens is computed from the audio prices, and not from the text prices', () => {
    const usage = { ...NO_USAGE, cacheRead: 1000, audioCacheRead: 400 }
    // 600 × (3 − 0.3) and 400 × (10 − 2) USD per million × 500,000 units per USD
    expect(cacheSavings(RATE, usage).cache_saved).toBe(810 + 1600)
  })

  test('saving and surcharge of a prompt cache are never below 0, whatever the prices', () => {
    const odd = completeTokenPrices({
      input: ONE,
      output: ONE,
      cache_read: decimal('2'),
      cache_write_5m: decimal('0.5'),
    })
    const rate = chargeRateOf({ ...FREE_PRICE, tokens: odd }, ONE, 500_000)
    const usage = { ...NO_USAGE, cacheRead: 1000, cacheWrite5m: 1000 }
    expect(cacheSavings(rate, usage)).toEqual({ cache_saved: 0, cache_surcharge: 0 })
  })

  test('cache savings are computed with the prices of the tier that the prompt reaches', () => {
    const tiered = {
      ...FREE_PRICE,
      tokens: PRICES,
      tiers: [{ above: 1000, tokens: { ...PRICES, input: decimal('6') } }],
    }
    const rate = chargeRateOf(tiered, ONE, 500_000)
    expect(cacheSavings(rate, { ...NO_USAGE, cacheRead: 1000 }).cache_saved).toBe(1350)
    // 1,001 × (6 − 0.3) × 0.5 = 2,852.85
    expect(cacheSavings(rate, { ...NO_USAGE, cacheRead: 1001 }).cache_saved).toBe(2853)
  })

  test('a call of a group with the ratio 0 has no prompt cache saving and no surcharge', () => {
    const free = chargeRateOf({ ...FREE_PRICE, tokens: PRICES }, decimal('0'), 500_000)
    expect(cacheSavings(free, { ...NO_USAGE, cacheRead: 1000, cacheWrite1h: 1000 })).toEqual({
      cache_saved: 0,
      cache_surcharge: 0,
    })
  })

  test('saving and surcharge of a prompt cache are exact and rounded once, for any prices, ratio and token counts', () => {
    const cents = fc.integer({ min: 0, max: 100_000 })
    const tokens = fc.integer({ min: 0, max: 3_000_000 })
    fc.assert(
      fc.property(
        fc.record({ input: cents, read: cents, short: cents, half: cents, long: cents, day: cents }),
        fc.record({ plain: tokens, read: tokens, short: tokens, half: tokens, long: tokens, day: tokens }),
        fc.integer({ min: 1, max: 300 }),
        (price, count, ratio) => {
          const usd = (value: number): Decimal => decimal((value / 1000).toFixed(3))
          const rate = chargeRateOf(
            {
              ...FREE_PRICE,
              tokens: completeTokenPrices({
                input: usd(price.input),
                output: usd(0),
                cache_read: usd(price.read),
                cache_write_5m: usd(price.short),
                cache_write_30m: usd(price.half),
                cache_write_1h: usd(price.long),
                cache_write_12h: usd(price.day),
              }),
            },
            decimal((ratio / 100).toFixed(2)),
            500_000,
          )
          const usage: Usage = {
            ...NO_USAGE,
            input: count.plain,
            cacheRead: count.read,
            cacheWrite5m: count.short,
            cacheWrite30m: count.half,
            cacheWrite1h: count.long,
            cacheWrite12h: count.day,
          }
          // Thousandths of a USD per million, times hundredths, times 500,000: units of 5 × 10⁻⁶.
          const rounded = (sum: bigint): number =>
            sum <= 0n ? 0 : Number((sum * BigInt(ratio) * 2n + 200_000n) / 400_000n)
          const dearer = (written: 'short' | 'half' | 'long' | 'day'): bigint =>
            BigInt(count[written]) * BigInt(price[written] - price.input)
          const expected = {
            cache_saved: rounded(BigInt(count.read) * BigInt(price.input - price.read)),
            cache_surcharge: rounded(dearer('short') + dearer('half') + dearer('long') + dearer('day')),
          }
          expect(cacheSavings(rate, usage)).toEqual(expected)
        },
      ),
      { numRuns: lawRuns(2_000) },
    )
  })

  test('cost without a cache, minus the cache saving, plus the cache surcharge, equals the actual charge to within one quota unit', () => {
    const usage = { ...NO_USAGE, input: 7, cacheRead: 12_345, cacheWrite5m: 678 }
    const plain = chargeOfCall(RATE, { ...NO_USAGE, input: 7 + 12_345 + 678 })
    const { cache_saved: saved, cache_surcharge: surcharge } = cacheSavings(RATE, usage)
    expect(Math.abs(plain - saved + surcharge - chargeOfCall(RATE, usage))).toBeLessThanOrEqual(1)
  })
})
