import { atScale, type Decimal, multiply } from './decimal.ts'
import { promptTokens, type Usage } from './usage.ts'

/** USD per million tokens of each kind. */
export interface TokenPrices {
  readonly input: Decimal
  readonly output: Decimal
  readonly cacheRead: Decimal
  readonly cacheWrite5m: Decimal
  readonly cacheWrite1h: Decimal
}

/** What a model costs, before any group's ratio. `docs/configuration.md: Prices`. */
export interface Price {
  readonly tokens: TokenPrices
  /** For prompts of more than `above` tokens these prices hold for the whole call; ascending. */
  readonly tiers: readonly { readonly above: number; readonly tokens: TokenPrices }[]
  /** USD per call. */
  readonly request: Decimal
  /** USD per web search. */
  readonly webSearch: Decimal
}

/** Quota units per single token, counted in `10^-scale` units. */
interface TokenRates {
  readonly input: bigint
  readonly output: bigint
  readonly cacheRead: bigint
  readonly cacheWrite5m: bigint
  readonly cacheWrite1h: bigint
  /** What a prompt token, cached or not, and one of output cost at most here or in a tier below. */
  readonly maxInput: bigint
  readonly maxOutput: bigint
}

/** A price made ready for one group: whole numbers only, so that a charge is exact. */
export interface Rate {
  /** What the numerators below stand over: a power of ten. */
  readonly denominator: bigint
  readonly tokens: TokenRates
  readonly tiers: readonly { readonly above: number; readonly tokens: TokenRates }[]
  readonly request: bigint
  readonly webSearch: bigint
  /** Any kind of token costs something. */
  readonly perToken: boolean
  /** Neither calls nor tokens cost anything. */
  readonly free: boolean
}

const KINDS = ['input', 'output', 'cacheRead', 'cacheWrite5m', 'cacheWrite1h'] as const

/** Price × group ratio × quota per unit. */
export function rateOf(price: Price, ratio: Decimal, quotaPerUnit: number): Rate {
  const factor = multiply(ratio, { digits: BigInt(quotaPerUnit), scale: 0 })
  const byToken = multiply(factor, { digits: 1n, scale: 6 })
  const all = [price.tokens, ...price.tiers.map((tier) => tier.tokens)]
  const scale = Math.max(
    price.request.scale + factor.scale,
    price.webSearch.scale + factor.scale,
    ...all.flatMap((tokens) => KINDS.map((kind) => tokens[kind].scale + byToken.scale)),
  )
  const rate = (value: Decimal, by: Decimal): bigint => atScale(multiply(value, by), scale)
  // They grow from tier to tier: the tiers are made in their order, the cheapest prompt's first.
  let dearestInput = 0n
  let dearestOutput = 0n
  const rates = (tokens: TokenPrices): TokenRates => {
    const input = rate(tokens.input, byToken)
    const output = rate(tokens.output, byToken)
    const cacheRead = rate(tokens.cacheRead, byToken)
    const cacheWrite5m = rate(tokens.cacheWrite5m, byToken)
    const cacheWrite1h = rate(tokens.cacheWrite1h, byToken)
    dearestInput = greatest(dearestInput, input, cacheRead, cacheWrite5m, cacheWrite1h)
    dearestOutput = greatest(dearestOutput, output)
    return { input, output, cacheRead, cacheWrite5m, cacheWrite1h, maxInput: dearestInput, maxOutput: dearestOutput }
  }
  const scaled = {
    denominator: 10n ** BigInt(scale),
    tokens: rates(price.tokens),
    tiers: price.tiers.map((tier) => ({ above: tier.above, tokens: rates(tier.tokens) })),
    request: rate(price.request, factor),
    webSearch: rate(price.webSearch, factor),
  }
  const perToken = [scaled.tokens, ...scaled.tiers.map((tier) => tier.tokens)].some((tokens) =>
    KINDS.some((kind) => tokens[kind] !== 0n),
  )
  return { ...scaled, perToken, free: !perToken && scaled.request === 0n }
}

/**
 * The charge in quota units: computed exactly, rounded once, half away from zero, and at least 1 where the
 * rate is not zero and any token was used.
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
  const least = !rate.free && prompt + usage.output > 0 ? 1 : 0
  return Math.max(rounded(sum, rate.denominator), least)
}

/**
 * The most that a call can cost (`docs/ledger.md: What is held`): the prompt at the dearest input price it
 * can trigger, cache writes included, and the whole output, at the dearest tier that a prompt of that size
 * can reach.
 */
export function maxCharge(rate: Rate, promptBound: number, outputBound: number, webSearches = 0): number {
  const { maxInput: dearestInput, maxOutput: dearestOutput } = ratesFor(rate, promptBound)
  const sum =
    times(promptBound, dearestInput) +
    times(outputBound, dearestOutput) +
    times(webSearches, rate.webSearch) +
    rate.request
  return rounded(sum, rate.denominator)
}

function ratesFor(rate: Rate, prompt: number): TokenRates {
  let found = rate.tokens
  for (const tier of rate.tiers) if (prompt > tier.above) found = tier.tokens
  return found
}

// Most counts of a call are zero, and a large number is dear to make.
function times(count: number, rate: bigint): bigint {
  return count === 0 ? 0n : BigInt(count) * rate
}

function greatest(...values: bigint[]): bigint {
  return values.reduce((a, b) => (a > b ? a : b))
}

function rounded(sum: bigint, denominator: bigint): number {
  const result = Number((2n * sum + denominator) / (2n * denominator))
  if (!Number.isSafeInteger(result)) throw new RangeError('a charge is beyond what can be counted')
  return result
}
