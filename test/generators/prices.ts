// Prices and usages of a call, for laws of its charge.
import { NO_USAGE, type Usage } from '@sluice/wire/usage'
import fc from 'fast-check'
import type { Decimal } from '../../src/domain/decimal.ts'
import type { TieredTokens } from '../../src/domain/price.ts'
import { byTokenKind, TOKEN_KINDS, type TokenPrices } from '../../src/domain/token-kinds.ts'

/** Amounts of money, zero among them. */
export const amounts: fc.Arbitrary<Decimal> = fc.oneof(
  { weight: 1, arbitrary: fc.constant({ digits: 0n, scale: 0 }) },
  {
    weight: 4,
    arbitrary: fc.record({
      digits: fc.bigInt({ min: 0n, max: 99_999n }),
      scale: fc.integer({ min: 2, max: 8 }),
    }),
  },
)

const tokenPrices: fc.Arbitrary<TokenPrices> = fc
  .array(amounts, { minLength: TOKEN_KINDS.length, maxLength: TOKEN_KINDS.length })
  .map((all) => {
    let next = 0
    return byTokenKind(() => all[next++] as Decimal)
  })

/** Prices of tokens with up to three for larger prompts. */
export const tieredPrices: fc.Arbitrary<TieredTokens> = fc.record({
  tokens: tokenPrices,
  tiers: fc
    .uniqueArray(fc.record({ above: fc.integer({ min: 1, max: 8_000 }), tokens: tokenPrices }), {
      maxLength: 3,
      selector: ({ above }) => above,
    })
    .map((tiers) => tiers.toSorted((one, other) => one.above - other.above)),
})

const count = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 5_000 }))

/** Counts of all kinds; those that are part of others do not exceed them. */
export const usages: fc.Arbitrary<Usage> = fc
  .record({
    text: count,
    read: count,
    audioInput: count,
    imageInput: count,
    audioCacheRead: count,
    imageCacheRead: count,
    cacheWrite5m: count,
    cacheWrite1h: count,
    cacheWrite30m: count,
    cacheWrite12h: count,
    said: count,
    audioOutput: count,
    imageOutput: count,
    webSearches: count,
    seconds: count,
    characters: count,
    images: fc.integer({ min: 0, max: 4 }),
    searchUnits: fc.integer({ min: 0, max: 400 }),
  })
  .map(({ text, read, said, ...counts }) => ({
    ...NO_USAGE,
    ...counts,
    input: text + counts.audioInput + counts.imageInput,
    cacheRead: read + counts.audioCacheRead + counts.imageCacheRead,
    output: said + counts.audioOutput + counts.imageOutput,
  }))
