import { type Decimal, divide, multiply, sumOf } from './decimal.ts'
import { type ImageForm, imagePrice } from './image-price.ts'
import type { Price, TokenPrices } from './price.ts'
import { measuredMedia, pricedBy, type PricedTool, type ToolCostKind } from './tool-use.ts'
import { promptTokens, type Usage } from './usage.ts'

/** Kinds of things that a call is charged for. */
export type CostKind =
  | 'input'
  | 'audio_input'
  | 'image_input'
  | 'cached'
  | 'audio_cached'
  | 'image_cached'
  | 'cache_write_5m'
  | 'cache_write_1h'
  | 'output'
  | 'audio_output'
  | 'image_output'
  | 'second'
  | 'character'
  | 'image'
  | 'search_unit'
  | ToolCostKind
  | 'request'

/** One line of a call's cost, before the ratio of its group. */
export interface CostLine {
  readonly kind: CostKind
  readonly count: number
  /** USD per million tokens or characters, or per one of anything else. */
  readonly price: Decimal
  /** Quota units, exact. */
  readonly quota: Decimal
}

/** Cost of a call before the ratio of its group. */
export interface Cost {
  readonly lines: readonly CostLine[]
  /** Sum of the lines in quota units, exact. */
  readonly sum: Decimal
  /** Number of prompt tokens above which its prices hold; null = those of all prompts. */
  readonly tierAbove: number | null
}

const PER_MILLION: Decimal = { digits: 1n, scale: 6 }
const PER_ONE: Decimal = { digits: 1n, scale: 0 }

/** Splits a charge into lines: their sum times the ratio, rounded once, is what `charge` returns. */
export function costOf(
  price: Price,
  quotaPerUnit: number,
  usage: Usage,
  form: ImageForm = {},
  tools: readonly PricedTool[] = [],
): Cost {
  const unit: Decimal = { digits: BigInt(quotaPerUnit), scale: 0 }
  const line = (kind: CostKind, count: number, each: Decimal, per = PER_ONE): CostLine => ({
    kind,
    count,
    price: each,
    quota: multiply(multiply(multiply({ digits: BigInt(count), scale: 0 }, each), per), unit),
  })
  const tier = price.tiers.findLast(({ above }) => promptTokens(usage) > above)
  const byTokens = tokenLines(tier?.tokens ?? price.tokens, usage, (kind, count, each) =>
    line(kind, count, each, PER_MILLION),
  )
  const { seconds, images } = measuredMedia(usage, tools)
  const measured = [
    line('second', seconds, price.second),
    line('character', usage.characters, price.characters, PER_MILLION),
    line('image', images, imagePrice(price.image, form)),
    line('search_unit', usage.searchUnits, price.searchUnit),
  ]
  const lines = [
    ...(byTokens.some(({ quota }) => quota.digits !== 0n) ? byTokens : [...byTokens, ...measured]),
    ...tools.map((tool) => line(tool.kind, tool.count, tool.price, pricedBy(tool.kind))),
    line('request', price.request.digits === 0n ? 0 : 1, price.request),
  ].filter(({ count }) => count !== 0)
  return { lines, sum: sumOf(lines.map(({ quota }) => quota)), tierAbove: tier?.above ?? null }
}

/** A cost under a ratio, rounded half away from zero, without the minimum of one unit. */
export function roundedCost({ sum }: Pick<Cost, 'sum'>, ratio: Decimal): number {
  return Number(divide(multiply(sum, ratio), PER_ONE, 0).digits)
}

function tokenLines(
  prices: TokenPrices,
  usage: Usage,
  line: (kind: CostKind, count: number, each: Decimal) => CostLine,
): CostLine[] {
  const { audioCacheRead = 0, imageCacheRead = 0 } = usage
  return [
    line('input', usage.input - usage.audioInput - usage.imageInput, prices.input),
    line('audio_input', usage.audioInput, prices.audioInput),
    line('image_input', usage.imageInput, prices.imageInput),
    line('cached', usage.cacheRead - audioCacheRead - imageCacheRead, prices.cacheRead),
    line('audio_cached', audioCacheRead, prices.audioCacheRead),
    line('image_cached', imageCacheRead, prices.imageCacheRead),
    line('cache_write_5m', usage.cacheWrite5m, prices.cacheWrite5m),
    line('cache_write_1h', usage.cacheWrite1h, prices.cacheWrite1h),
    line('output', usage.output - usage.audioOutput - usage.imageOutput, prices.output),
    line('audio_output', usage.audioOutput, prices.audioOutput),
    line('image_output', usage.imageOutput, prices.imageOutput),
  ]
}
