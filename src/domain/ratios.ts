import { type Decimal, decimalText, divide, multiply, parseDecimal } from './decimal.ts'
import type { Price, TokenPrices } from './price.ts'
import type { Json, JsonObject } from './stored-configuration.ts'

/**
 * A model's price as tools of this family of gateways set it: relative numbers. A ratio of 1 is 2 USD per
 * million prompt tokens; the others are relative to the price of prompt tokens. What is absent is not set.
 */
export interface Ratios {
  readonly model?: Decimal
  readonly completion?: Decimal
  readonly cache?: Decimal
  /** Of writes that are kept for five minutes; those for an hour cost 1.6 times as much. */
  readonly createCache?: Decimal
  /** USD per call, whatever the tokens: then the others count for nothing. */
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
/** An hour's writes by five minutes' writes. */
const HOUR: Decimal = { digits: 16n, scale: 1 }

/** Places of a ratio that has to be computed. */
const PLACES = 6

/** Ratios as they are stored: a mapping from their names to decimals as texts. */
export function readRatios(value: Json): Ratios {
  const pairs = typeof value === 'object' && value !== null ? Object.entries(value) : []
  return Object.fromEntries(
    pairs.flatMap(([name, text]): [string, Decimal][] => {
      const decimal = typeof text === 'string' ? parseDecimal(text) : undefined
      return decimal ? [[name, decimal]] : []
    }),
  )
}

/** Ratios to be stored; undefined where there are none. */
export function ratiosJson(
  ratios: { readonly [Name in RatioName]?: Decimal | undefined },
): JsonObject | undefined {
  const set = Object.entries(ratios).flatMap(([name, value]): [string, string][] =>
    value ? [[name, decimalText(value)]] : [],
  )
  return set.length > 0 ? Object.fromEntries(set) : undefined
}

/** The ratios that say what a price says; rounded to six places where they are not to be written exactly. */
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
 * The price that ratios make of another, or of nothing. What no ratio sets stays as it is in `base`, in
 * relation to its prompt price. Undefined where nothing says what a prompt token costs. Without `base` output
 * costs as much as input, a cache read a tenth and a write 1.25 times. Tiers of `base` are not kept.
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
      cacheWrite1h: related(createCache && multiply(createCache, HOUR), 'cacheWrite1h', TWO),
    },
    tiers: [],
    request: ratios.model ? ZERO : (base?.request ?? ZERO),
    webSearch: base?.webSearch ?? WEB_SEARCH,
  }
}

function allAt(value: Decimal): TokenPrices {
  return { input: value, output: value, cacheRead: value, cacheWrite5m: value, cacheWrite1h: value }
}
