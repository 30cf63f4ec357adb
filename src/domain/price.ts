import { atScale, type Decimal, multiply } from './decimal.ts'

/** USD per million tokens of each kind. */
export interface TokenPrices {
  readonly input: Decimal
  readonly output: Decimal
  readonly cacheRead: Decimal
  readonly cacheWrite5m: Decimal
  readonly cacheWrite1h: Decimal
}

/** Price of a model, before any group's ratio. `docs/configuration.md: Prices`. */
export interface Price {
  readonly tokens: TokenPrices
  /** Prices for prompts of more than `above` tokens, which then hold for the whole call; ascending. */
  readonly tiers: readonly { readonly above: number; readonly tokens: TokenPrices }[]
  /** USD per call. */
  readonly request: Decimal
  /** USD per web search. */
  readonly webSearch: Decimal
}

/** Quota units per token, counted in `10^-scale` units. */
export interface TokenRates {
  readonly input: bigint
  readonly output: bigint
  readonly cacheRead: bigint
  readonly cacheWrite5m: bigint
  readonly cacheWrite1h: bigint
  /** Highest rate of a prompt token and of an output token, in this tier and all lower ones. */
  readonly maxInput: bigint
  readonly maxOutput: bigint
}

/** Price computed for one group, in integers so that a charge is exact. */
export interface Rate {
  /** Common denominator of all rates: a power of ten. */
  readonly denominator: bigint
  readonly tokens: TokenRates
  readonly tiers: readonly { readonly above: number; readonly tokens: TokenRates }[]
  readonly request: bigint
  readonly webSearch: bigint
  /** Whether any kind of token costs something. */
  readonly perToken: boolean
  /** Whether neither calls nor tokens cost anything. */
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
  // Maxima so far; tiers are processed in ascending order.
  let maxInput = 0n
  let maxOutput = 0n
  const rates = (tokens: TokenPrices): TokenRates => {
    const input = rate(tokens.input, byToken)
    const output = rate(tokens.output, byToken)
    const cacheRead = rate(tokens.cacheRead, byToken)
    const cacheWrite5m = rate(tokens.cacheWrite5m, byToken)
    const cacheWrite1h = rate(tokens.cacheWrite1h, byToken)
    maxInput = maximum(maxInput, input, cacheRead, cacheWrite5m, cacheWrite1h)
    maxOutput = maximum(maxOutput, output)
    return { input, output, cacheRead, cacheWrite5m, cacheWrite1h, maxInput, maxOutput }
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

function maximum(...values: bigint[]): bigint {
  return values.reduce((a, b) => (a > b ? a : b))
}

/** Text of a rate, for `rateFrom`. */
export function rateText(rate: Rate): string {
  return JSON.stringify(rate, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
}

/** Reads the text of a rate: all texts in it are whole numbers. */
export function rateFrom(text: string): Rate {
  return JSON.parse(text, (_, value: unknown) => (typeof value === 'string' ? BigInt(value) : value)) as Rate
}
