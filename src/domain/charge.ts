import type { Rate, TokenRates } from './price.ts'
import { promptTokens, type Usage } from './usage.ts'

/**
 * Charge in quota units: computed exactly, rounded once, half away from zero, and at least 1 if the rate is
 * not free and any token was used.
 */
export function charge(rate: Rate, usage: Usage): number {
  const prompt = promptTokens(usage)
  const tokens = ratesFor(rate, prompt)
  const sum =
    times(usage.input, tokens.input) +
    times(usage.output, tokens.output) +
    times(usage.cacheRead, tokens.cacheRead) +
    times(usage.cacheWrite5m, tokens.cacheWrite5m) +
    times(usage.cacheWrite1h, tokens.cacheWrite1h) +
    times(usage.webSearches, rate.webSearch) +
    rate.request
  const minCharge = !rate.free && prompt + usage.output > 0 ? 1 : 0
  return Math.max(rounded(sum, rate.denominator), minCharge)
}

/**
 * Highest possible charge of a call (`docs/ledger.md: Holds`): the prompt at its most expensive input
 * rate, cache writes included, and the whole output, each at the most expensive tier within reach.
 */
export function maxCharge(rate: Rate, promptBound: number, outputBound: number, webSearches = 0): number {
  const { maxInput, maxOutput } = ratesFor(rate, promptBound)
  const sum =
    times(promptBound, maxInput) +
    times(outputBound, maxOutput) +
    times(webSearches, rate.webSearch) +
    rate.request
  return rounded(sum, rate.denominator)
}

function ratesFor(rate: Rate, prompt: number): TokenRates {
  let found = rate.tokens
  for (const tier of rate.tiers) if (prompt > tier.above) found = tier.tokens
  return found
}

// Skips zero, which most counts are, as creating a BigInt is slow.
function times(count: number, rate: bigint): bigint {
  return count === 0 ? 0n : BigInt(count) * rate
}

function rounded(sum: bigint, denominator: bigint): number {
  const result = Number((2n * sum + denominator) / (2n * denominator))
  if (!Number.isSafeInteger(result)) throw new RangeError('a charge is beyond what can be counted')
  return result
}
