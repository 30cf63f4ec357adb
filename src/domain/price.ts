import { CACHE_WRITE_FIELDS, type CacheWriteLifetime } from '@sluice/wire/reported-usage'
import { TOOL_KINDS } from '@sluice/wire/tool-use'
import {
  type Decimal,
  decimalText,
  isGreaterDecimal,
  multiply,
  parseDecimal,
  powerOfTen,
  toScaledInteger,
  ZERO,
} from './decimal.ts'
import type { CallNote, Transport } from './call-outcome.ts'
import type { JsonObject } from './json.ts'
import {
  valueForEachTokenKind,
  completeTokenPrices,
  type PartialTokenPrices,
  TOKEN_KINDS,
  type TokenKindRow,
  type TokenPrices,
  tokenPriceTexts,
} from './token-kinds.ts'
import type { ToolPrices } from './tool-use.ts'

/** Token prices of a model, and those for large prompts. */
export interface TieredTokenPrices {
  readonly tokens: TokenPrices
  /**
   * Prices for prompts of more than `above` tokens, in ascending order. They then apply to the whole call.
   */
  readonly tiers: readonly { readonly above: number; readonly tokens: TokenPrices }[]
}

/**
 * The price of a provider's service tier: a factor for the token prices, or prices that replace them. Not to
 * be confused with `tiers`, whose prices depend on the size of the prompt.
 */
export type ServicePrice = Decimal | TieredTokenPrices

/** Price of a model, before any group's ratio. `docs/configuration.md: Prices`. */
export interface Price extends Readonly<UnitPrices>, TieredTokenPrices {
  /**
   * Prices of service tiers by name, as defined in `service-tier.ts`. For other tiers, the vendor's published
   * price applies.
   */
  readonly service: Readonly<Record<string, ServicePrice>>
  /** Numbers that multiply the token prices, by region; if empty, the vendor's published numbers apply. */
  readonly regions: Readonly<Record<string, Decimal>>
  /** Price of each call in USD, in addition to the tokens and units that it uses. */
  readonly request: Decimal
  /** USD per use of tools that the provider runs; without an entry, the list price applies. */
  readonly tools: ToolPrices
  readonly image: ImagePrices
}

/**
 * Units other than tokens that have a single price: the name of the price, the name of the line in a call's
 * cost, and the name of the count in its usage. Most code for such units is derived from these rows. Images
 * are separate, because they have several prices.
 */
export const SINGLE_PRICE_UNITS = [
  /** USD per million characters of text that is turned into speech. */
  { name: 'characters', line: 'character', count: 'characters', isPerMillion: true },
  /** USD per second of audio. */
  { name: 'second', line: 'second', count: 'seconds', isPerMillion: false },
  /** USD per search unit of a rerank call. */
  { name: 'search_unit', line: 'search_unit', count: 'searchUnits', isPerMillion: false },
] as const

type PlainUnit = (typeof SINGLE_PRICE_UNITS)[number]

export type UnitPrices<T = Decimal> = Record<PlainUnit['name'], T>

/** Creates an object with a value for each unit of `SINGLE_PRICE_UNITS`. */
export function valueForEachUnit<T>(value: (unit: PlainUnit) => T): UnitPrices<T> {
  return Object.fromEntries(SINGLE_PRICE_UNITS.map((unit) => [unit.name, value(unit)])) as UnitPrices<T>
}

/** All units other than tokens, in the order of the lines of a cost; those priced per million come last. */
export const MEASURED_UNITS = [
  ...SINGLE_PRICE_UNITS.map(({ name, line, count, isPerMillion }) => ({
    line,
    count,
    isPerMillion,
    /**
     * The price of a unit; for images, the highest price if `form` is absent. All rows have a function of
     * this name, because every charge reads it and rows of equal shape are faster.
     */
    priceOf: (price: Price, _form?: ImageForm) => price[name],
  })),
  {
    line: 'image' as const,
    count: 'images' as const,
    isPerMillion: false,
    priceOf: ({ image }: Price, form?: ImageForm) =>
      form ? imagePrice(image, form) : highestImagePrice(image),
  },
].toSorted((one, other) => Number(one.isPerMillion) - Number(other.isPerMillion))

/** A unit that is charged if a call uses no tokens that have a price. */
export type MeasuredUnit = (typeof MEASURED_UNITS)[number]

/** Size and quality of an image, as written in requests and responses: `1024x1024`, `hd`. */
export interface ImageForm {
  readonly size?: string | undefined
  readonly quality?: string | undefined
}

/**
 * USD per image, by `SIZE/QUALITY`, `SIZE`, or `default`. If empty, images have no price. Without `default`,
 * an image of an unlisted size or quality has the highest price.
 */
export type ImagePrices = Readonly<Record<string, Decimal>>

/**
 * The price of an image: that of its size and quality, otherwise that of its size, otherwise the default,
 * otherwise the highest.
 */
export function imagePrice(prices: ImagePrices, { size, quality }: ImageForm): Decimal {
  const forms = size === undefined ? [] : [`${size}/${quality ?? ''}`, size]
  for (const form of [...forms, 'default']) if (Object.hasOwn(prices, form)) return prices[form] ?? ZERO
  return highestImagePrice(prices)
}

/** The highest price of an image; 0 if there is none. */
export function highestImagePrice(prices: ImagePrices): Decimal {
  return Object.values(prices).reduce(
    (highest, each) => (isGreaterDecimal(each, highest) ? each : highest),
    ZERO,
  )
}

/** The price of a free model. */
export const FREE_PRICE: Price = {
  tokens: valueForEachTokenKind(() => ZERO),
  tiers: [],
  service: {},
  regions: {},
  request: ZERO,
  tools: Object.fromEntries(TOOL_KINDS.map((kind) => [kind, ZERO])),
  ...valueForEachUnit(() => ZERO),
  image: {},
}

/**
 * The highest token prices that may apply to a prompt of more than `above` tokens; quota is reserved at these
 * prices.
 */
interface DearestTokens {
  readonly above: number
  /**
   * Highest prices of text in the prompt and in the output. The prices of writing to a cache are in `writes`.
   */
  readonly input: Decimal
  readonly output: Decimal
  /** Highest prices if the prompt or the output may contain audio and images as well as text. */
  readonly mediaInput: Decimal
  readonly mediaOutput: Decimal
  /** Highest prices of writing to a prompt cache, by the cache's lifetime. */
  readonly writes: Readonly<Record<CacheWriteLifetime, Decimal>>
}

/** The prices of a token of plain text, as whole numbers of parts of a quota unit. */
interface TextRate {
  readonly input: number
  readonly output: number
  /** Number of parts in a quota unit. */
  readonly parts: number
}

/** A model's price for the calls of one group, with values that are computed from it once. */
export interface ChargeRate {
  /** The price of the model. If the ratio is 0, all prices are 0 except those of tools. */
  readonly price: Price
  /** The group's ratio, which multiplies every price. */
  readonly ratio: Decimal
  readonly quotaPerUnit: number
  /** Factor from US dollars to quota units, including the ratio. */
  readonly factor: Decimal
  /** One entry per tier of prompt sizes, in ascending order, beginning with the base prices. */
  readonly dearest: readonly DearestTokens[]
  /** Units other than tokens for which the model has a price. */
  readonly units: readonly MeasuredUnit[]
  /** Whether any kind of token has a price. */
  readonly perToken: boolean
  /** Whether everything a call may use is free, apart from tools. */
  readonly free: boolean
  /**
   * By which a call is charged that used nothing but text and no cache; undefined if that depends on more, or if the numbers
   * are too large.
   */
  readonly text: TextRate | undefined
}

/**
 * Computes the rate of a group from a model's price: the values that the charges and holds of its calls need.
 */
export function chargeRateOf(modelPrice: Price, ratio: Decimal, quotaPerUnit: number): ChargeRate {
  const factor = multiply(ratio, { digits: BigInt(quotaPerUnit), scale: 0 })
  const price = factor.digits === 0n ? { ...FREE_PRICE, tools: modelPrice.tools } : modelPrice
  const tiers = [{ above: 0, tokens: price.tokens }, ...price.tiers]
  const perToken = tiers.some(({ tokens }) =>
    TOKEN_KINDS.some(({ name }) => isGreaterDecimal(tokens[name], ZERO)),
  )
  const units = MEASURED_UNITS.filter(({ priceOf }) => isGreaterDecimal(priceOf(price), ZERO))
  const free = !perToken && units.length === 0 && !isGreaterDecimal(price.request, ZERO)
  const text = textRateOf(price, factor)
  return { price, ratio, quotaPerUnit, factor, dearest: dearestTokens(tiers), units, perToken, free, text }
}

function textRateOf({ tokens, tiers, request }: Price, factor: Decimal): TextRate | undefined {
  if (tiers.length > 0 || request.digits !== 0n) return undefined
  const [input, output] = [multiply(tokens.input, factor), multiply(tokens.output, factor)]
  const scale = Math.max(input.scale, output.scale)
  const exact = [toScaledInteger(input, scale), toScaledInteger(output, scale), powerOfTen(scale + 6)]
  const common = exact.reduce(commonDivisor)
  const [perInput = 0, perOutput = 0, parts = 0] = exact.map((one) => Number(one / common))
  if (![perInput, perOutput, 4 * parts].every(Number.isSafeInteger)) return undefined
  return { input: perInput, output: perOutput, parts }
}

function commonDivisor(one: bigint, other: bigint): bigint {
  return other === 0n ? one : commonDivisor(other, one % other)
}

const LIFETIMES = Object.entries(CACHE_WRITE_FIELDS)
const WRITES: ReadonlySet<string> = new Set(Object.values(CACHE_WRITE_FIELDS))

function dearestTokens(tiers: Price['tiers']): DearestTokens[] {
  return tiers.map(({ above }, index) => {
    const reached = tiers.slice(0, index + 1)
    const dearest = (isCounted: (kind: TokenKindRow) => boolean): Decimal =>
      reached
        .flatMap(({ tokens }) => TOKEN_KINDS.filter(isCounted).map(({ name }) => tokens[name]))
        .reduce((highest, each) => (isGreaterDecimal(each, highest) ? each : highest), ZERO)
    return {
      above,
      input: dearest(({ side, medium, count }) => side === 'prompt' && !medium && !WRITES.has(count)),
      output: dearest(({ side, medium }) => side === 'output' && !medium),
      mediaInput: dearest(({ side, count }) => side === 'prompt' && !WRITES.has(count)),
      mediaOutput: dearest(({ side }) => side === 'output'),
      writes: Object.fromEntries(
        LIFETIMES.map(([lifetime, written]) => [lifetime, dearest(({ count }) => count === written)]),
      ) as DearestTokens['writes'],
    }
  })
}

/** A model's price in a group, at one time; stored so that later charges can use it. */
interface PriceSet {
  readonly price: Price
  /** Ratio of the group, which multiplies every price. */
  readonly ratio: Decimal
  readonly quotaPerUnit: number
}

/** The service tier and region that a call requested. They apply if the response states none. */
export interface RequestedTierAndRegion {
  /** Service tier that the client requested; empty if none. */
  readonly requested: string
  readonly tier: string
  /** Region that the request named; absent if none. */
  readonly region?: string | undefined
  /** Whether the provider chooses the service tier itself, so that `tier` is only an assumption. */
  readonly isGuessed: boolean
}

/** Columns of a call's row that have no part in its charge. */
export interface CallRowFacts {
  readonly attempts: string | undefined
  readonly guards: string
  readonly transport: Transport
  /** Absent if there is none, or if it follows from the charge. */
  readonly note?: CallNote
}

/**
 * Facts of a request that are kept for the charge and the row of a response that is generated without its client.
 * Those that are absent were not kept by an earlier version.
 */
export interface ContinuedRequest extends RequestedTierAndRegion {
  /** The model by the channel's name. */
  readonly upstreamModel?: string
  /** How long the provider's cache keeps what it writes, if the response does not state it. */
  readonly cacheLifetime?: CacheWriteLifetime
  readonly rowFacts?: CallRowFacts
  /** Fields that were not sent to the upstream. */
  readonly dropped?: readonly string[]
  readonly delays?: CallDelays
  readonly isIdempotent?: true | undefined
}

/** Delays of a call before its upstream started working, in milliseconds. */
export interface CallDelays {
  readonly queuedMs: number
  readonly connectMs: number
}

/** Formats a price set as text for `priceSetFrom`. A decimal becomes `{"decimal": "0.3"}`. */
export function priceSetText({ price, ratio, quotaPerUnit }: PriceSet, sent?: ContinuedRequest): string {
  return JSON.stringify({ price, ratio, quotaPerUnit, sent }, (_, value: unknown) =>
    isDecimal(value) ? { decimal: decimalText(value) } : value,
  )
}

/** Parses the text of a price set. */
export function priceSetFrom(text: string): PriceSet & { readonly sent?: ContinuedRequest } {
  const set = JSON.parse(text, (_, value: unknown) => {
    if (typeof value !== 'object' || value === null || !('decimal' in value)) return value
    return parseDecimal(value.decimal as string) ?? value
  }) as StoredPriceSet
  const { price } = set
  return {
    ...set,
    price: {
      ...price,
      ...valueForEachUnit(({ name }) => price[name] ?? ZERO),
      tokens: completeTokenPrices(price.tokens),
      tiers: price.tiers.map((one) => ({ ...one, tokens: completeTokenPrices(one.tokens) })),
      service: price.service ?? {},
      regions: price.regions ?? {},
    },
  }
}

/**
 * A price set as an earlier version of the gateway may have stored it, without newer kinds of tokens and
 * units, and without service tiers.
 */
interface StoredPriceSet extends Omit<PriceSet, 'price'> {
  readonly sent?: ContinuedRequest
  readonly price: Omit<Price, 'tokens' | 'tiers' | 'service' | 'regions' | PlainUnit['name']> &
    Partial<Pick<Price, 'service' | 'regions' | PlainUnit['name']>> & {
      readonly tokens: PartialTokenPrices
      readonly tiers: readonly { readonly above: number; readonly tokens: PartialTokenPrices }[]
    }
}

/** Whether a value is a decimal, as opposed to an object of prices. */
export function isDecimal(value: unknown): value is Decimal {
  return typeof value === 'object' && value !== null && typeof (value as Decimal).digits === 'bigint'
}

/** A price in the form that it has in gateway.yaml, without the tiers for large prompts. */
export function priceAsJson({
  tokens,
  request,
  tools,
  image,
  service,
  regions,
  ...units
}: Price): JsonObject {
  const { web_search: webSearch, ...otherTools } = tools
  return {
    ...tokenPriceTexts(tokens),
    request: decimalText(request),
    ...(webSearch && { web_search: decimalText(webSearch) }),
    ...(Object.keys(otherTools).length > 0 && { tools: decimalTexts(otherTools) }),
    ...valueForEachUnit(({ name }) => decimalText(units[name])),
    ...(Object.keys(image).length > 0 && { image: decimalTexts(image) }),
    ...(Object.keys(service).length > 0 && { service: servicePricesAsJson(service) }),
    ...(Object.keys(regions).length > 0 && { regions: decimalTexts(regions) }),
  }
}

/** Prices of service tiers in the form that they have in gateway.yaml. */
export function servicePricesAsJson(service: Price['service']): Record<string, string | JsonObject> {
  return Object.fromEntries(
    Object.entries(service).map(([name, one]) => [
      name,
      isDecimal(one) ? decimalText(one) : tieredTexts(one),
    ]),
  )
}

/** Prices for large prompts in the form that they have in gateway.yaml. */
export function tiersAsJson(tiers: Price['tiers']) {
  return tiers.map(({ above, tokens }) => ({ above, ...tokenPriceTexts(tokens) }))
}

function tieredTexts({ tokens, tiers }: TieredTokenPrices): JsonObject {
  return {
    ...tokenPriceTexts(tokens),
    ...(tiers.length > 0 && { tiers: tiersAsJson(tiers) }),
  }
}

/** Converts decimals to texts. */
export function decimalTexts(decimals: { readonly [name: string]: Decimal }): Record<string, string> {
  return Object.fromEntries(Object.entries(decimals).map(([name, value]) => [name, decimalText(value)]))
}
