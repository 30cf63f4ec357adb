import { type Decimal, decimalText, divide, multiply, parseDecimal } from './decimal.ts'
import type { ImagePrices } from './image-price.ts'
import { FREE_PRICE, type Price, type TokenPrices } from './price.ts'
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
  /** Relative to the prompt price. */
  readonly image?: Decimal
  readonly imageCompletion?: Decimal
  readonly audio?: Decimal
  /** Relative to the price of audio in the prompt. */
  readonly audioCompletion?: Decimal
  /** USD per million characters, and per second. */
  readonly characters?: Decimal
  readonly second?: Decimal
  /** USD per search unit. */
  readonly searchUnit?: Decimal
  /** USD per image. */
  readonly images?: ImagePrices
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
/** Price of a cache write for an hour relative to one for five minutes. */
const HOUR_PER_5M: Decimal = { digits: 16n, scale: 1 }

/** Decimal places of computed ratios. */
const PLACES = 6

/** Parses stored ratios: a mapping from names to decimals as text, and of `images` to a mapping of them. */
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

/** Ratios in the form that is stored; undefined if none is set. */
export function ratiosJson(
  ratios: { readonly [Name in RatioName]?: Ratios[Name] | undefined },
): JsonObject | undefined {
  const { images, ...single } = ratios
  const set = Object.entries(single).flatMap(([name, value]): [string, Json][] =>
    value ? [[name, decimalText(value)]] : [],
  )
  if (images) set.push(['images', imagesJson(images)])
  return set.length > 0 ? Object.fromEntries(set) : undefined
}

/** Prices of images as texts, by form. */
export function imagesJson(images: ImagePrices): Record<string, string> {
  return Object.fromEntries(Object.entries(images).map(([form, price]) => [form, decimalText(price)]))
}

/**
 * Ratios equivalent to a price, rounded to six places where they are not exact. Those of audio and images are
 * absent where these cost as much as text.
 */
export function ratiosOf({ tokens, request, characters, second, searchUnit, image }: Price): Ratios {
  const { input, output } = tokens
  const measured = {
    ...(characters.digits > 0n && { characters }),
    ...(second.digits > 0n && { second }),
    ...(searchUnit.digits > 0n && { searchUnit }),
    ...(Object.keys(image).length > 0 && { images: image }),
  }
  if (input.digits === 0n && output.digits === 0n)
    return { ...(request.digits > 0n ? { price: request } : { model: ZERO, completion: ONE }), ...measured }
  if (input.digits === 0n) return { model: ZERO, completion: ONE, ...measured }
  return {
    model: multiply(input, { digits: 5n, scale: 1 }),
    completion: divide(output, input, PLACES),
    cache: divide(tokens.cacheRead, input, PLACES),
    createCache: divide(tokens.cacheWrite5m, input, PLACES),
    ...relations(tokens),
    ...measured,
  }
}

function relations({ input, output, ...tokens }: TokenPrices): Ratios {
  const { audioInput, audioOutput, imageInput, imageOutput } = tokens
  const over = (value: Decimal, base: Decimal): Decimal =>
    base.digits === 0n ? ZERO : divide(value, base, PLACES)
  const hasAudio = !isSame(audioInput, input) || !isSame(audioOutput, output)
  const hasImages = !isSame(imageInput, input) || !isSame(imageOutput, output)
  return {
    ...(hasAudio && { audio: over(audioInput, input), audioCompletion: over(audioOutput, audioInput) }),
    ...(hasImages && { image: over(imageInput, input), imageCompletion: over(imageOutput, imageInput) }),
  }
}

function isSame(a: Decimal, b: Decimal): boolean {
  return decimalText(a) === decimalText(b)
}

/**
 * Applies ratios to a base price. Prices without a ratio keep their relation to the prompt price of `base`;
 * without `base`, output costs as much as input, a cache read a tenth and a write 1.25 times, audio and
 * images as much as text. Undefined if nothing is priced. Tiers are dropped.
 */
export function pricedByRatios(ratios: Ratios, base: Price | undefined): Price | undefined {
  const tools = base?.tools ?? {}
  if (ratios.price) return { ...FREE_PRICE, request: ratios.price, tools: {} }
  const hasUnits = Boolean(ratios.characters ?? ratios.second ?? ratios.searchUnit ?? ratios.images)
  const input = ratios.model
    ? multiply(ratios.model, TWO)
    : (base?.tokens.input ?? (hasUnits ? ZERO : undefined))
  if (!input) return undefined
  return {
    tokens: tokensByRatios(ratios, input, base?.tokens),
    tiers: [],
    request: ratios.model ? ZERO : (base?.request ?? ZERO),
    tools,
    characters: ratios.characters ?? base?.characters ?? ZERO,
    second: ratios.second ?? base?.second ?? ZERO,
    searchUnit: ratios.searchUnit ?? base?.searchUnit ?? ZERO,
    image: ratios.images ?? base?.image ?? {},
  }
}

function tokensByRatios(ratios: Ratios, input: Decimal, base: TokenPrices | undefined): TokenPrices {
  const known = base && base.input.digits > 0n ? base : undefined
  const kept = (kind: keyof TokenPrices): Decimal | undefined => {
    if (!known) return undefined
    return ratios.model ? multiply(input, divide(known[kind], known.input, PLACES)) : known[kind]
  }
  const related = (ratio: Decimal | undefined, kind: keyof TokenPrices, unknown: Decimal): Decimal =>
    ratio ? multiply(input, ratio) : (kept(kind) ?? multiply(input, unknown))
  const { createCache } = ratios
  const output = related(ratios.completion, 'output', ONE)
  const audioInput = related(ratios.audio, 'audioInput', ONE)
  const imageInput = related(ratios.image, 'imageInput', ONE)
  const completed = (ratio: Decimal | undefined, from: Decimal, kind: keyof TokenPrices): Decimal => {
    if (ratio) return multiply(from, ratio)
    // A price that was that of text stays so.
    return known && !isSame(known[kind], known.output) ? (kept(kind) ?? output) : output
  }
  const cacheRead = related(ratios.cache, 'cacheRead', TENTH)
  const cachedMedia = (kind: 'audioCacheRead' | 'imageCacheRead'): Decimal =>
    known && !isSame(known[kind], known.cacheRead) ? (kept(kind) ?? cacheRead) : cacheRead
  return {
    input,
    output,
    cacheRead,
    cacheWrite5m: related(createCache, 'cacheWrite5m', WRITE_5M),
    cacheWrite1h: related(createCache && multiply(createCache, HOUR_PER_5M), 'cacheWrite1h', TWO),
    audioInput,
    audioOutput: completed(ratios.audioCompletion, audioInput, 'audioOutput'),
    imageInput,
    imageOutput: completed(ratios.imageCompletion, imageInput, 'imageOutput'),
    audioCacheRead: cachedMedia('audioCacheRead'),
    imageCacheRead: cachedMedia('imageCacheRead'),
  }
}
