import { NO_USAGE, type Usage } from '@sluice/wire/usage'
import fc from 'fast-check'
import type { Decimal } from '../../src/domain/decimal.ts'
import type { TieredTokenPrices } from '../../src/domain/price.ts'
import { valueForEachTokenKind, TOKEN_KINDS, type TokenPrices } from '../../src/domain/token-kinds.ts'

/** Generates decimals by ranges of their digits and of their scale. */
export function decimals(digits: fc.BigIntConstraints, scale: fc.IntegerConstraints): fc.Arbitrary<Decimal> {
  return fc.record({ digits: fc.bigInt(digits), scale: fc.integer(scale) })
}

/** Generates prices of one unit in USD. A fifth of them are 0. */
export function unitPrices(minScale: number): fc.Arbitrary<Decimal> {
  return fc.oneof(
    { weight: 1, arbitrary: fc.constant({ digits: 0n, scale: 0 }) },
    { weight: 4, arbitrary: decimals({ min: 0n, max: 99_999n }, { min: minScale, max: 8 }) },
  )
}

/** Generates prices of tokens, with at most `maxTiers` others for long prompts. */
export function tieredTokens(
  price: fc.Arbitrary<Decimal>,
  maxTiers: number,
): fc.Arbitrary<TieredTokenPrices> {
  const length = TOKEN_KINDS.length
  const tokens: fc.Arbitrary<TokenPrices> = fc
    .array(price, { minLength: length, maxLength: length })
    .map((all) => {
      let next = 0
      return valueForEachTokenKind(() => all[next++] as Decimal)
    })
  return fc.record({
    tokens: fc.oneof({ weight: 4, arbitrary: tokens }, fc.constant(FREE_TOKENS)),
    tiers: fc
      .uniqueArray(fc.record({ above: fc.integer({ min: 1, max: 8_000 }), tokens }), {
        maxLength: maxTiers,
        selector: ({ above }) => above,
      })
      .map((tiers) => tiers.toSorted((one, other) => one.above - other.above)),
  })
}

const FREE_TOKENS = valueForEachTokenKind((): Decimal => ({ digits: 0n, scale: 0 }))

const count = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 5_000 }))

/** Generates usages in which a count that is part of another does not exceed it. */
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
