import { type Decimal, decimalText, divide, multiply, ONE, parseDecimal, ZERO } from './decimal.ts'
import {
  valueForEachUnit,
  decimalTexts,
  FREE_PRICE,
  type ImagePrices,
  SINGLE_PRICE_UNITS,
  type Price,
  type UnitPrices,
} from './price.ts'
import type { Json, JsonObject } from './json.ts'
import {
  defaultPrice,
  TOKEN_KINDS,
  type TokenKind,
  type TokenKindRow,
  type TokenPrices,
  type TokenRatio,
} from './token-kinds.ts'

/**
 * A model's price in the relative numbers that One API and related gateways use. A model ratio of 1 means 2
 * USD per million prompt tokens; other ratios are relative to the prompt price.
 */
export interface Ratios extends Readonly<Partial<Record<TokenRatio | keyof UnitPrices, Decimal>>> {
  readonly model?: Decimal
  /** USD per image. */
  readonly images?: ImagePrices
  /** USD per call. If it is set, all other ratios are ignored. */
  readonly price?: Decimal
}

/** Name of a ratio, such as `completion`, or of a price in `Ratios`. */
export type RatioName = keyof Ratios

const TWO: Decimal = { digits: 2n, scale: 0 }
/** Number of decimal places to which ratios are computed. */
const PLACES = 6

/** Parses stored ratios: a mapping from names to decimals as text. `images` is itself such a mapping. */
export function readRatios(value: Json): Ratios {
  const pairs = typeof value === 'object' && value !== null ? Object.entries(value) : []
  return Object.fromEntries(
    pairs.flatMap(([name, stored]): [string, Decimal | ImagePrices][] => {
      const read = name === 'images' ? imagesIn(stored) : decimalIn(stored)
      return read ? [[name, read]] : []
    }),
  )
}

function imagesIn(value: unknown): ImagePrices | undefined {
  const pairs = typeof value === 'object' && value !== null ? Object.entries(value) : []
  const prices = pairs.flatMap(([form, text]): [string, Decimal][] => {
    const decimal = decimalIn(text)
    return decimal ? [[form, decimal]] : []
  })
  return prices.length > 0 ? Object.fromEntries(prices) : undefined
}

function decimalIn(text: unknown): Decimal | undefined {
  return typeof text === 'string' ? parseDecimal(text) : undefined
}

/** Converts ratios to the JSON in which they are stored; undefined if there are none. */
export function ratiosJson(
  ratios: { readonly [Name in RatioName]?: Ratios[Name] | undefined },
): JsonObject | undefined {
  const { images, ...single } = ratios
  const set = Object.entries(single).flatMap(([name, value]): [string, Json][] =>
    value ? [[name, decimalText(value)]] : [],
  )
  if (images) set.push(['images', decimalTexts(images)])
  return set.length > 0 ? Object.fromEntries(set) : undefined
}

/**
 * Converts a price to ratios, rounded to six decimal places. Ratios of audio and images are left out if these
 * cost as much as text.
 */
export function ratiosOf({ tokens, request, image, ...units }: Price): Ratios {
  const { input, output } = tokens
  const measured = {
    ...Object.fromEntries(
      SINGLE_PRICE_UNITS.flatMap(({ name }) => (units[name].digits > 0n ? [[name, units[name]]] : [])),
    ),
    ...(Object.keys(image).length > 0 && { images: image }),
  }
  if (input.digits === 0n && output.digits === 0n)
    return { ...(request.digits > 0n ? { price: request } : { model: ZERO, completion: ONE }), ...measured }
  if (input.digits === 0n) return { model: ZERO, completion: ONE, ...measured }
  return { model: multiply(input, { digits: 5n, scale: 1 }), ...tokenRatios(tokens), ...measured }
}

function tokenRatios(tokens: TokenPrices): Ratios {
  const own = new Set(
    TOKEN_KINDS.flatMap((kind) => (kind.ratio && !isDefault(kind, tokens) ? [kind.medium] : [])),
  )
  const ratios = TOKEN_KINDS.flatMap(({ name, medium, ratio }): [TokenRatio, Decimal][] => {
    if (!ratio || ratio.times || (medium && !own.has(medium))) return []
    const base = tokens[ratio.of]
    return [[ratio.name, base.digits === 0n ? ZERO : divide(tokens[name], base, PLACES)]]
  })
  return Object.fromEntries(ratios)
}

function isDefault(kind: TokenKindRow, prices: TokenPrices): boolean {
  const price = defaultPrice(kind, prices)
  return price !== undefined && isSame(prices[kind.name], price)
}

function isSame(a: Decimal, b: Decimal): boolean {
  return decimalText(a) === decimalText(b)
}

/**
 * Applies ratios to a base price. A token price without a ratio keeps its relation to the base's prompt
 * price. Without `base`, output costs as much as input, a cache read a tenth, a cache write 1.25 times, and
 * audio and images as much as text. Undefined if nothing gets a price. Tiers for large prompts are dropped.
 */
export function priceFromRatios(ratios: Ratios, base: Price | undefined): Price | undefined {
  const tools = base?.tools ?? {}
  if (ratios.price) return { ...FREE_PRICE, request: ratios.price, tools: {} }
  const hasUnits = SINGLE_PRICE_UNITS.some(({ name }) => ratios[name]) || ratios.images !== undefined
  const input = ratios.model
    ? multiply(ratios.model, TWO)
    : (base?.tokens.input ?? (hasUnits ? ZERO : undefined))
  if (!input) return undefined
  return {
    tokens: tokensByRatios(ratios, input, base?.tokens),
    tiers: [],
    service: base?.service ?? {},
    regions: base?.regions ?? {},
    request: ratios.model ? ZERO : (base?.request ?? ZERO),
    tools,
    ...valueForEachUnit(({ name }) => ratios[name] ?? base?.[name] ?? ZERO),
    image: ratios.images ?? base?.image ?? {},
  }
}

function tokensByRatios(ratios: Ratios, input: Decimal, base: TokenPrices | undefined): TokenPrices {
  const known = base && base.input.digits > 0n ? base : undefined
  const kept = (kind: TokenKindRow): Decimal | undefined => {
    // A price that equals its default stays unset, so that it keeps following the price from which the
    // default is derived.
    if (!known || isDefault(kind, known)) return undefined
    return ratios.model ? multiply(input, divide(known[kind.name], known.input, PLACES)) : known[kind.name]
  }
  const prices: { -readonly [Kind in TokenKind]?: Decimal } = { input }
  for (const kind of TOKEN_KINDS) {
    const { name, ratio } = kind
    const stated = ratio && ratios[ratio.name]
    const related = stated && multiply(prices[ratio.of] ?? ZERO, multiply(stated, ratio.times ?? ONE))
    prices[name] ??= related ?? kept(kind) ?? defaultPrice(kind, prices) ?? ZERO
  }
  return prices as TokenPrices
}
