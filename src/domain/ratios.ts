import { type Decimal, decimalText, divide, multiply, parseDecimal } from './decimal.ts'
import type { Price, TokenPrices } from './price.ts'
import type { Json, JsonObject } from './stored-configuration.ts'

/**
 * Price of a model in the relative numbers that related gateways use. A model ratio of 1 is 2 USD per million
 * prompt tokens; other ratios are relative to the prompt price. An absent ratio is not set.
 */
export interface Ratios {
  readonly model?: Decimal
  readonly completion?: Decimal
  readonly cache?: Decimal
  /** Ratio of cache writes kept for five minutes; those kept for an hour cost 1.6 times as much. */
  readonly createCache?: Decimal
  /** USD per call; overrides all other ratios. */
  readonly price?: Decimal
}

/** The name of a ratio. */
export type RatioName = keyof Ratios

const TWO: Decimal = { digits: 2n, scale: 0 }
const ONE: Decimal = { digits: 1n, scale: 0 }
const ZERO: Decimal = { digits: 0n, scale: 0 }
const TENTH: Decimal = { digits: 1n, scale: 1 }
const WRITE_5M: Decimal = { digits: 125n, scale: 2 }
const WEB_SEARCH: Decimal = { digits: 1n, scale: 2 }
/** Price of a cache write for an hour relative to one for five minutes. */
const HOUR_PER_5M: Decimal = { digits: 16n, scale: 1 }

/** Decimal places of computed ratios. */
const PLACES = 6

/** Parses stored ratios: a mapping from names to decimals as text. */
export function readRatios(value: Json): Ratios {
  const pairs = typeof value === 'object' && value !== null ? Object.entries(value) : []
  return Object.fromEntries(
    pairs.flatMap(([name, text]): [string, Decimal][] => {
      const decimal = typeof text === 'string' ? parseDecimal(text) : undefined
      return decimal ? [[name, decimal]] : []
    }),
  )
}

/** Ratios in the form that is stored; undefined if none is set. */
export function ratiosJson(
  ratios: { readonly [Name in RatioName]?: Decimal | undefined },
): JsonObject | undefined {
  const set = Object.entries(ratios).flatMap(([name, value]): [string, string][] =>
    value ? [[name, decimalText(value)]] : [],
  )
  return set.length > 0 ? Object.fromEntries(set) : undefined
}

/** Ratios equivalent to a price, rounded to six places where they are not exact. */
export function ratiosOf({ tokens, request }: Price): Ratios {
  const { input, output } = tokens
  if (input.digits === 0n) return request.digits > 0n ? { price: request } : { model: ZERO, completion: ONE }
  return {
    model: multiply(input, { digits: 5n, scale: 1 }),
    completion: divide(output, input, PLACES),
    cache: divide(tokens.cacheRead, input, PLACES),
    createCache: divide(tokens.cacheWrite5m, input, PLACES),
  }
}

/**
 * Applies ratios to a base price. Prices without a ratio keep their relation to the prompt price of `base`;
 * without `base`, output costs as much as input, a cache read a tenth and a write 1.25 times. Undefined if
 * the prompt price is unknown. Tiers are dropped.
 */
export function pricedByRatios(ratios: Ratios, base: Price | undefined): Price | undefined {
  if (ratios.price) return { tokens: allAt(ZERO), tiers: [], request: ratios.price, webSearch: WEB_SEARCH }
  const input = ratios.model ? multiply(ratios.model, TWO) : base?.tokens.input
  if (!input) return undefined
  const known = base && base.tokens.input.digits > 0n ? base.tokens : undefined
  const related = (ratio: Decimal | undefined, kind: keyof TokenPrices, unknown: Decimal): Decimal => {
    if (ratio) return multiply(input, ratio)
    if (!known) return multiply(input, unknown)
    return ratios.model ? multiply(input, divide(known[kind], known.input, PLACES)) : known[kind]
  }
  const { createCache } = ratios
  return {
    tokens: {
      input,
      output: related(ratios.completion, 'output', ONE),
      cacheRead: related(ratios.cache, 'cacheRead', TENTH),
      cacheWrite5m: related(createCache, 'cacheWrite5m', WRITE_5M),
      cacheWrite1h: related(createCache && multiply(createCache, HOUR_PER_5M), 'cacheWrite1h', TWO),
    },
    tiers: [],
    request: ratios.model ? ZERO : (base?.request ?? ZERO),
    webSearch: base?.webSearch ?? WEB_SEARCH,
  }
}

function allAt(value: Decimal): TokenPrices {
  return { input: value, output: value, cacheRead: value, cacheWrite5m: value, cacheWrite1h: value }
}
