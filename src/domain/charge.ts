import { type Decimal, multiply, sumOf } from './decimal.ts'
import { type ImageForm, imageRate } from './image-price.ts'
import type { Rate, TokenRates } from './price.ts'
import { measuredMedia, pricedBy, type PricedTool } from './tool-use.ts'
import { promptTokens, type Usage } from './usage.ts'

/** The most that a call is expected to use; all 0 where absent. */
export interface UsageBounds {
  readonly prompt: number
  readonly output: number
  readonly tools?: readonly PricedTool[]
  readonly seconds?: number
  readonly characters?: number
  readonly images?: number
  readonly searchUnits?: number
  /** Whether tokens of prompt or output may stand for audio or images. */
  readonly hasMedia?: boolean
}

/**
 * Charge in quota units: computed exactly, rounded once, half away from zero, and at least 1 if the rate is
 * not free and anything was used. Seconds, characters, images and search units count where no tokens do:
 * either none are reported, or they have no price. `form`: size and quality of the images; `tools`: uses of
 * the provider's, and media that are priced beside tokens.
 */
export function charge(
  rate: Rate,
  usage: Usage,
  form: ImageForm = {},
  tools: readonly PricedTool[] = [],
): number {
  const prompt = promptTokens(usage)
  const byTokens = tokenSum(ratesFor(rate, prompt), usage)
  const sum = (byTokens === 0n ? measuredSum(rate, usage, form, tools) : byTokens) + rate.request
  const used = prompt + usage.output + usage.seconds + usage.characters + usage.images + usage.searchUnits
  const minCharge = !rate.free && used > 0 ? 1 : 0
  return Math.max(withTools(rate, sum, tools), minCharge)
}

function tokenSum(tokens: TokenRates, usage: Usage): bigint {
  const { audioCacheRead = 0, imageCacheRead = 0 } = usage
  return (
    times(usage.input - usage.audioInput - usage.imageInput, tokens.input) +
    times(usage.audioInput, tokens.audioInput) +
    times(usage.imageInput, tokens.imageInput) +
    times(usage.output - usage.audioOutput - usage.imageOutput, tokens.output) +
    times(usage.audioOutput, tokens.audioOutput) +
    times(usage.imageOutput, tokens.imageOutput) +
    times(usage.cacheRead - audioCacheRead - imageCacheRead, tokens.cacheRead) +
    times(audioCacheRead, tokens.audioCacheRead) +
    times(imageCacheRead, tokens.imageCacheRead) +
    times(usage.cacheWrite5m, tokens.cacheWrite5m) +
    times(usage.cacheWrite1h, tokens.cacheWrite1h)
  )
}

function measuredSum(rate: Rate, usage: Usage, form: ImageForm, tools: readonly PricedTool[]): bigint {
  const { characters, searchUnits } = usage
  const { seconds, images } = measuredMedia(usage, tools)
  return (
    times(seconds, rate.second) +
    times(searchUnits, rate.searchUnit) +
    times(characters, rate.characters) +
    (images === 0 ? 0n : times(images, imageRate(rate.image, form)))
  )
}

/**
 * Highest possible charge of a call (`docs/ledger.md: Holds`): the prompt at its most expensive input rate,
 * cache writes included, and the whole output, each at the most expensive tier within reach; or its seconds,
 * characters, search units and images, each image at the dearest price, where that is more. At least 1 where
 * anything has a price: a charge is, too.
 */
export function maxCharge(rate: Rate, bounds: UsageBounds): number {
  const { prompt, output, tools = [], seconds = 0, characters = 0, images = 0, searchUnits = 0 } = bounds
  const tokens = ratesFor(rate, prompt)
  const byTokens =
    times(prompt, bounds.hasMedia ? tokens.maxMediaInput : tokens.maxInput) +
    times(output, bounds.hasMedia ? tokens.maxMediaOutput : tokens.maxOutput)
  const measured =
    times(seconds, rate.second) +
    times(characters, rate.characters) +
    times(searchUnits, rate.searchUnit) +
    times(images, rate.image.dearest)
  const sum = (byTokens > measured ? byTokens : measured) + rate.request
  const isFree = rate.free && sum === 0n && costOfTools(tools).digits * rate.usd === 0n
  return Math.max(withTools(rate, sum, tools), isFree ? 0 : 1)
}

/** Charge of uses of tools alone. */
export function chargeOfTools(rate: Rate, tools: readonly PricedTool[]): number {
  return withTools(rate, 0n, tools)
}

/** A sum in the units of the rate with the uses of tools, rounded. Their prices may have more places. */
function withTools({ usd, denominator }: Rate, sum: bigint, tools: readonly PricedTool[]): number {
  if (tools.length === 0) return rounded(sum, denominator)
  const { digits, scale } = costOfTools(tools)
  const unit = 10n ** BigInt(scale)
  return rounded(sum * unit + digits * usd, denominator * unit)
}

/** Price of uses of tools in USD, exact. */
export function costOfTools(tools: readonly PricedTool[]): Decimal {
  return sumOf(
    tools.map(({ kind, count, price }) =>
      multiply(multiply({ digits: BigInt(count), scale: 0 }, price), pricedBy(kind)),
    ),
  )
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
