import { atScale, type Decimal, multiply } from './decimal.ts'
import { TOOL_KINDS, type ToolPrices } from './tool-use.ts'
import { type ImagePrices, type ImageRates, imageRatesOf } from './image-price.ts'

/** USD per million tokens of each kind. */
export interface TokenPrices {
  readonly input: Decimal
  readonly output: Decimal
  readonly cacheRead: Decimal
  readonly cacheWrite5m: Decimal
  readonly cacheWrite1h: Decimal
  readonly audioInput: Decimal
  readonly audioOutput: Decimal
  readonly imageInput: Decimal
  readonly imageOutput: Decimal
  readonly audioCacheRead: Decimal
  readonly imageCacheRead: Decimal
}

/** Kinds of tokens that default to text. */
type Modality =
  | 'audioInput'
  | 'audioOutput'
  | 'imageInput'
  | 'imageOutput'
  | 'audioCacheRead'
  | 'imageCacheRead'

/** Prices of tokens, with those of other modalities where they differ from text. */
export type TextPrices = Omit<TokenPrices, Modality> & { readonly [Kind in Modality]?: Decimal | undefined }

/** Price of a model, before any group's ratio. `docs/configuration.md: Prices`. */
export interface Price {
  readonly tokens: TokenPrices
  /** Prices for prompts of more than `above` tokens, which then hold for the whole call; ascending. */
  readonly tiers: readonly { readonly above: number; readonly tokens: TokenPrices }[]
  /** USD per call. */
  readonly request: Decimal
  /** USD for each use of tools that the provider runs, where they are stated. */
  readonly tools: ToolPrices
  /** USD per million characters that are spoken. */
  readonly characters: Decimal
  /** USD per second of a recording. */
  readonly second: Decimal
  /** USD per search unit of a rerank call. */
  readonly searchUnit: Decimal
  readonly image: ImagePrices
}

const ZERO: Decimal = { digits: 0n, scale: 0 }

/** The price of something free. */
export const FREE_PRICE: Price = {
  tokens: withModalities({
    input: ZERO,
    output: ZERO,
    cacheRead: ZERO,
    cacheWrite5m: ZERO,
    cacheWrite1h: ZERO,
  }),
  tiers: [],
  request: ZERO,
  tools: Object.fromEntries(TOOL_KINDS.map((kind) => [kind, ZERO])),
  characters: ZERO,
  second: ZERO,
  searchUnit: ZERO,
  image: {},
}

/** Completes prices of tokens: audio and images cost as much as text where no price is stated. */
export function withModalities(given: TextPrices): TokenPrices {
  return {
    ...given,
    audioInput: given.audioInput ?? given.input,
    audioOutput: given.audioOutput ?? given.output,
    imageInput: given.imageInput ?? given.input,
    imageOutput: given.imageOutput ?? given.output,
    audioCacheRead: given.audioCacheRead ?? given.cacheRead,
    imageCacheRead: given.imageCacheRead ?? given.cacheRead,
  }
}

/** Quota units per token, counted in `10^-scale` units. */
export interface TokenRates extends Readonly<Record<keyof TokenPrices, bigint>> {
  /** Highest rate of a prompt token and of an output token of text, in this tier and all lower ones. */
  readonly maxInput: bigint
  readonly maxOutput: bigint
  /** The same for tokens of any modality. */
  readonly maxMediaInput: bigint
  readonly maxMediaOutput: bigint
}

/** Price computed for one group, in integers so that a charge is exact. */
export interface Rate {
  /** Common denominator of all rates: a power of ten. */
  readonly denominator: bigint
  readonly tokens: TokenRates
  readonly tiers: readonly { readonly above: number; readonly tokens: TokenRates }[]
  readonly request: bigint
  /** Rate of one US dollar, by which uses of tools are charged. */
  readonly usd: bigint
  readonly tools: ToolPrices
  /** Rate of one character. */
  readonly characters: bigint
  readonly second: bigint
  readonly searchUnit: bigint
  readonly image: ImageRates
  /** Whether any kind of token costs something. */
  readonly perToken: boolean
  /** Whether nothing that a call is charged by costs anything; tools apart. */
  readonly free: boolean
}

const KINDS = [
  'input',
  'output',
  'cacheRead',
  'cacheWrite5m',
  'cacheWrite1h',
  'audioInput',
  'audioOutput',
  'imageInput',
  'imageOutput',
  'audioCacheRead',
  'imageCacheRead',
] as const satisfies readonly (keyof TokenPrices)[]

const PER_MILLION: Decimal = { digits: 1n, scale: 6 }

/** Price × group ratio × quota per unit. */
export function rateOf(price: Price, ratio: Decimal, quotaPerUnit: number): Rate {
  const factor = multiply(ratio, { digits: BigInt(quotaPerUnit), scale: 0 })
  const byToken = multiply(factor, PER_MILLION)
  const all = [price.tokens, ...price.tiers.map((tier) => tier.tokens)]
  const { request, second, searchUnit } = price
  const singles = [request, second, searchUnit, ...Object.values(price.image)]
  const scale = Math.max(
    factor.scale,
    ...singles.map((single) => single.scale + factor.scale),
    price.characters.scale + byToken.scale,
    ...all.flatMap((tokens) => KINDS.map((kind) => tokens[kind].scale + byToken.scale)),
  )
  const rate = (value: Decimal, by: Decimal): bigint => atScale(multiply(value, by), scale)
  // Maxima so far; tiers are processed in ascending order.
  let maxima = { maxInput: 0n, maxOutput: 0n, maxMediaInput: 0n, maxMediaOutput: 0n }
  const rates = (tokens: TokenPrices): TokenRates => {
    const own = Object.fromEntries(KINDS.map((kind) => [kind, rate(tokens[kind], byToken)]))
    const computed = own as Record<keyof TokenPrices, bigint>
    const { input, cacheRead, cacheWrite5m, cacheWrite1h, output } = computed
    const maxInput = maximum(maxima.maxInput, input, cacheRead, cacheWrite5m, cacheWrite1h)
    const maxOutput = maximum(maxima.maxOutput, output)
    const { audioInput, imageInput, audioCacheRead, imageCacheRead, audioOutput, imageOutput } = computed
    const maxMedia = maximum(audioInput, imageInput, audioCacheRead, imageCacheRead)
    maxima = {
      maxInput,
      maxOutput,
      maxMediaInput: maximum(maxima.maxMediaInput, maxInput, maxMedia),
      maxMediaOutput: maximum(maxima.maxMediaOutput, maxOutput, audioOutput, imageOutput),
    }
    return { ...computed, ...maxima }
  }
  const scaled = {
    denominator: 10n ** BigInt(scale),
    tokens: rates(price.tokens),
    tiers: price.tiers.map((tier) => ({ above: tier.above, tokens: rates(tier.tokens) })),
    request: rate(price.request, factor),
    usd: atScale(factor, scale),
    tools: price.tools,
    characters: rate(price.characters, byToken),
    second: rate(price.second, factor),
    searchUnit: rate(price.searchUnit, factor),
    image: imageRatesOf(price.image, (value) => rate(value, factor)),
  }
  const perToken = [scaled.tokens, ...scaled.tiers.map((tier) => tier.tokens)].some((tokens) =>
    KINDS.some((kind) => tokens[kind] !== 0n),
  )
  const units = [scaled.request, scaled.characters, scaled.second, scaled.searchUnit, scaled.image.dearest]
  return { ...scaled, perToken, free: !perToken && units.every((value) => value === 0n) }
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
