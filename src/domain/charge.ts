import { CACHE_LIFETIMES, type CacheLifetime } from '@sluice/wire/reported-usage'
import { promptTokens, type Usage } from '@sluice/wire/usage'
import { type Decimal, divide, isMore, multiply, ONE, powerOfTen, Sum } from './decimal.ts'
import { type ImageForm, MEASURED_UNITS, type MeasuredUnit, type Price, type Rate } from './price.ts'
import { TOKEN_KINDS, type TokenLine, type TokenPrices, WHOLE_KINDS } from './token-kinds.ts'
import type { PricedTool, ToolCostKind } from './tool-use.ts'

/** The maximum that a call is expected to use; absent counts are 0. */
export interface UsageBounds extends Partial<Pick<Usage, MeasuredUnit['count']>> {
  readonly prompt: number
  readonly output: number
  readonly tools?: readonly PricedTool[]
  /** Whether tokens of the prompt or of the output may be audio or images. */
  readonly hasMedia?: boolean
  /** Lifetimes for which the prompt may be written to a cache; all if absent. */
  readonly lifetimes?: readonly CacheLifetime[]
}

/**
 * Charge in quota units: the sum of the lines of `linesOf` times the ratio, computed exactly and rounded
 * once, half away from zero. At least 1 if the rate is not free and anything was used.
 */
export function charge(
  rate: Rate,
  usage: Usage,
  form: ImageForm = {},
  tools: readonly PricedTool[] = [],
): number {
  const quota = inQuota(sumOfLines(linesOf(rate.price, usage, form, tools)), rate.factor)
  if (quota > 0 || rate.free) return quota
  const isUsed =
    promptTokens(usage) + usage.output > 0 || MEASURED_UNITS.some(({ count }) => usage[count] > 0)
  return isUsed ? 1 : 0
}

/**
 * Maximum charge of a call (`docs/ledger.md: Holds`): the larger of two sums, plus the price of the request
 * and of tools. The first is the whole prompt and the whole output at the highest price of their kinds, in
 * the tiers that a prompt of this size can reach. The second is the measured units, with images at their
 * highest price. At least 1 if anything has a price, like a charge.
 */
export function maxCharge({ price, factor, dearest, units, free }: Rate, bounds: UsageBounds): number {
  const { prompt, output, tools = [] } = bounds
  const tier = dearest.findLast(({ above }) => prompt > above) ?? dearest[0]!
  const sum = sumOfLines([
    { kind: 'input', count: prompt, price: inputPrice(tier, bounds) },
    { kind: 'output', count: output, price: bounds.hasMedia ? tier.mediaOutput : tier.output },
  ])
  const measured: PricedLine[] = []
  for (const { line, count, priceOf } of units) {
    const used = bounds[count]
    if (used) measured.push({ kind: line, count: used, price: priceOf(price) })
  }
  if (measured.length > 0) sum.raiseTo(sumOfLines(measured))
  sum.add(price.request)
  addLines(sum, tools)
  return Math.max(inQuota(sum, factor), free && sum.digits * factor.digits === 0n ? 0 : 1)
}

const ALL_LIFETIMES = Object.keys(CACHE_LIFETIMES) as readonly CacheLifetime[]

function inputPrice(
  { input, mediaInput, writes }: Rate['dearest'][number],
  { hasMedia, lifetimes = ALL_LIFETIMES }: UsageBounds,
): Decimal {
  let price = hasMedia ? mediaInput : input
  for (const lifetime of lifetimes) if (isMore(writes[lifetime], price)) price = writes[lifetime]
  return price
}

/** Charge of tool uses alone. */
export function chargeOfTools({ factor }: Rate, tools: readonly PricedTool[]): number {
  return inQuota(sumOfLines(tools), factor)
}

/** What prompt caches changed in the cost of a call, in quota units. */
export interface CacheSavings {
  /** What the tokens read from a cache would have cost more as plain input. */
  readonly cache_saved: number
  /** What the tokens written to a cache cost beyond plain input. */
  readonly cache_surcharge: number
}

const NO_CACHE: CacheSavings = { cache_saved: 0, cache_surcharge: 0 }

/**
 * Compares the tokens of a call that were read from or written to a cache with plain input at the same rate.
 * Audio and images that were read are compared with plain audio and images. Each sum is rounded once, half
 * away from zero, and never below 0: some prices make reading dearer, or writing cheaper, than input.
 */
export function cacheSavings({ price, factor }: Rate, usage: Usage): CacheSavings {
  if (CACHED_KINDS.every(({ count }) => !usage[count])) return NO_CACHE
  const { tokens } = tierOf(price, usage) ?? price
  const [saved, surcharge] = [new Sum(), new Sum()]
  for (const { side, name, count, parts, plain } of CACHED_KINDS) {
    let own = usage[count] ?? 0
    for (const part of parts) own -= usage[part] ?? 0
    if (own === 0) continue
    const sum = side === 'read' ? saved : surcharge
    const sign = side === 'read' ? 1n : -1n
    sum.add(perMillion(BigInt(own) * sign, tokens[plain]))
    sum.add(perMillion(BigInt(own) * -sign, tokens[name]))
  }
  return { cache_saved: atLeastZero(saved, factor), cache_surcharge: atLeastZero(surcharge, factor) }
}

/** The part of an original charge that an answer from the cache costs, rounded half away from zero. */
export function hitCharge({ digits, scale }: Decimal, original: number): number {
  const unit = powerOfTen(scale)
  return Number((BigInt(original) * digits * 2n + unit) / (unit * 2n))
}

const perMillion = (count: bigint, { digits, scale }: Decimal): Decimal => ({
  digits: count * digits,
  scale: scale + 6,
})

const atLeastZero = (sum: Decimal, factor: Decimal): number => (sum.digits > 0n ? inQuota(sum, factor) : 0)

/** Kinds of tokens that are read from or written to a cache, with the kind that they are compared with. */
const CACHED_KINDS = TOKEN_KINDS.flatMap(({ name, count, cached }) =>
  cached
    ? [
        {
          name,
          count,
          ...cached,
          /** Counts of tokens that this one includes and that have a separate price. */
          parts: TOKEN_KINDS.filter(({ partOf }) => partOf === name).map((part) => part.count),
        },
      ]
    : [],
)

/** A sum in USD, converted to quota units and rounded. */
function inQuota(sum: Decimal, factor: Decimal): number {
  const { digits, scale } = multiply(sum, factor)
  const unit = powerOfTen(scale)
  const quota = Number((2n * digits + unit) / (2n * unit))
  if (!Number.isSafeInteger(quota)) throw new RangeError('a charge is beyond what can be counted')
  return quota
}

/** Kinds of items that a call is charged for. */
export type CostKind = TokenLine | MeasuredUnit['line'] | ToolCostKind | 'request'

/** Item that a call is charged for. */
interface PricedLine {
  readonly kind: CostKind
  readonly count: number
  /** USD per million tokens or characters, or per single unit of anything else. */
  readonly price: Decimal
}

const PER_MILLION: ReadonlySet<string> = new Set<CostKind>([
  ...TOKEN_KINDS.map(({ line }) => line),
  ...MEASURED_UNITS.filter(({ isPerMillion }) => isPerMillion).map(({ line }) => line),
  'image_generation_input',
  'image_generation_image_input',
  'image_generation_output',
])

/**
 * Lists the items that a call is charged for, without those it did not use. Measured units (`MEASURED_UNITS`)
 * are charged only if tokens are not: because none are reported, or because they have no price. `form` is the
 * size and quality of the images; `tools` are uses of the provider's tools, and media priced in addition to
 * tokens.
 */
function linesOf(price: Price, usage: Usage, form: ImageForm, tools: readonly PricedTool[]): PricedLine[] {
  const lines = tokenLines((tierOf(price, usage) ?? price).tokens, usage)
  if (lines.every((line) => line.price.digits === 0n)) {
    for (const { line, count, priceOf } of MEASURED_UNITS) {
      if (usage[count] === 0 || tools.some(({ kind }) => kind === line)) continue
      lines.push({ kind: line, count: usage[count], price: priceOf(price, form) })
    }
  }
  for (const { kind, count, price: each } of tools) if (count !== 0) lines.push({ kind, count, price: each })
  if (price.request.digits !== 0n) lines.push({ kind: 'request', count: 1, price: price.request })
  return lines
}

function tokenLines(prices: TokenPrices, usage: Usage): PricedLine[] {
  const lines: PricedLine[] = []
  for (const { name, line, count, parts } of WHOLE_KINDS) {
    const tokens = usage[count] ?? 0
    if (tokens === 0) continue
    let own = tokens
    for (const part of parts) own -= usage[part.count] ?? 0
    if (own !== 0) lines.push({ kind: line, count: own, price: prices[name] })
    if (own === tokens) continue
    for (const part of parts) {
      const included = usage[part.count] ?? 0
      if (included !== 0) lines.push({ kind: part.line, count: included, price: prices[part.name] })
    }
  }
  return lines
}

/** The tier whose prices apply to a usage; undefined if the base prices apply. */
function tierOf({ tiers }: Price, usage: Usage): Price['tiers'][number] | undefined {
  if (tiers.length === 0) return undefined
  const prompt = promptTokens(usage)
  return tiers.findLast(({ above }) => prompt > above)
}

/** Cost of one line in USD, exact. */
function costOfLine({ kind, count, price }: PricedLine): Decimal {
  return { digits: BigInt(count) * price.digits, scale: price.scale + placesOf(kind) }
}

/** Sum of lines in USD, exact. */
export function sumOfLines(lines: readonly PricedLine[]): Sum {
  return addLines(new Sum(), lines)
}

/** Adds lines to a sum in USD. */
function addLines(sum: Sum, lines: readonly PricedLine[]): Sum {
  // Skips zeros, which are frequent in holds, because creating a BigInt is slow.
  for (const line of lines) if (line.count !== 0) sum.add(costOfLine(line))
  return sum
}

/** Whether the price of a line is per million. */
export function isPerMillion(kind: string): boolean {
  return PER_MILLION.has(kind)
}

function placesOf(kind: CostKind): number {
  return PER_MILLION.has(kind) ? 6 : 0
}

/** One line of a call's cost, before the ratio of its group. */
interface CostLine extends PricedLine {
  /** Quota units, exact. */
  readonly quota: Decimal
}

/** Cost of a call before the ratio of its group. */
interface Cost {
  readonly lines: readonly CostLine[]
  /** Sum of the lines in quota units, exact. */
  readonly sum: Decimal
  /** Number of prompt tokens above which these prices apply; null for the base prices. */
  readonly tierAbove: number | null
}

/** The lines that `charge` adds up. Their sum times the ratio, rounded once, is the charge. */
export function costOf(
  price: Price,
  quotaPerUnit: number,
  usage: Usage,
  form: ImageForm = {},
  tools: readonly PricedTool[] = [],
): Cost {
  const unit: Decimal = { digits: BigInt(quotaPerUnit), scale: 0 }
  const lines = linesOf(price, usage, form, tools)
  return {
    lines: lines.map((line) => ({ ...line, quota: multiply(costOfLine(line), unit) })),
    sum: multiply(sumOfLines(lines), unit),
    tierAbove: tierOf(price, usage)?.above ?? null,
  }
}

/** A cost times a ratio, rounded half away from zero, without the minimum of one unit. */
export function roundedCost({ sum }: Pick<Cost, 'sum'>, ratio: Decimal): number {
  return Number(divide(multiply(sum, ratio), ONE, 0).digits)
}
