import { CACHE_WRITE_FIELDS, type CacheWriteLifetime } from '@sluice/wire/reported-usage'
import { promptTokens, type Usage } from '@sluice/wire/usage'
import { type Decimal, divide, isGreaterDecimal, multiply, ONE, powerOfTen, Sum } from './decimal.ts'
import { type ImageForm, MEASURED_UNITS, type MeasuredUnit, type Price, type ChargeRate } from './price.ts'
import { TOKEN_KINDS, type TokenCostLine, type TokenPrices, INDEPENDENT_KINDS } from './token-kinds.ts'
import { ADVISOR_COST_KINDS, type PricedTool, type ToolCostKind } from './tool-use.ts'

/** The maximum that a call is expected to use: numbers of tokens and other units. Absent counts are 0. */
export interface UsageBounds extends Partial<Pick<Usage, MeasuredUnit['count']>> {
  readonly prompt: number
  readonly output: number
  readonly tools?: readonly PricedTool[]
  /** Whether the prompt or the output may contain audio or images. */
  readonly hasMedia?: boolean
  /** Prompt cache lifetimes with which the prompt may be written to the provider's cache; all if absent. */
  readonly lifetimes?: readonly CacheWriteLifetime[]
}

/**
 * The charge of a call in quota units: its cost lines added up exactly, multiplied by the group's ratio, and
 * rounded once, half away from zero. At least 1 if the rate is not free and anything was used.
 */
export function chargeOfCall(
  rate: ChargeRate,
  usage: Usage,
  form: ImageForm = {},
  tools: readonly PricedTool[] = [],
): number {
  const ofText = tools.length === 0 ? chargeOfText(rate, usage) : undefined
  if (ofText !== undefined) return ofText
  const quota = inQuota(sumOfCostLines(linesOf(rate.price, usage, form, tools)), rate.factor)
  if (quota > 0 || rate.free) return quota
  const isUsed =
    promptTokens(usage) + usage.output > 0 || MEASURED_UNITS.some(({ count }) => usage[count] > 0)
  return isUsed ? 1 : 0
}

/**
 * The charge of a call that used nothing but text and no cache, as most do: exact, and five times as fast as with `BigInt`.
 * Undefined if it cannot be computed in this way.
 */
function chargeOfText({ text, free }: ChargeRate, usage: Usage): number | undefined {
  if (!text || !isPlainText(usage)) return undefined
  const { input, output } = usage
  const doubled = 2 * (input * text.input + output * text.output) + text.parts
  if (doubled > Number.MAX_SAFE_INTEGER) return undefined
  const quota = (doubled - (doubled % (2 * text.parts))) / (2 * text.parts)
  return quota > 0 || free || input + output === 0 ? quota : 1
}

/** All counts that may have a price, other than the two of plain text. */
const OTHER_COUNTS: readonly (keyof Usage)[] = [...TOKEN_KINDS, ...MEASURED_UNITS]
  .map(({ count }) => count)
  .filter((count) => count !== 'input' && count !== 'output')

/** Whether a call used nothing with a price other than the two of plain text. */
function isPlainText(usage: Usage): boolean {
  return OTHER_COUNTS.every((count) => !usage[count])
}

/**
 * Quota units that one call holds at most. A request may allow more than any balance can pay, such as 10^15 tokens; several
 * of them are counted exactly together.
 */
export const MAX_HOLD = 2 ** 50

/**
 * The maximum charge of a call in quota units (`docs/ledger.md: Holds`), at most `MAX_HOLD`: the larger of two sums, plus the
 * price of the request and of tools. The first sum is the price of the whole prompt and the whole output at
 * the highest price of their kinds, in the tiers that a prompt of this size can reach. The second sum is the
 * price of all units other than tokens, with images at their highest price. At least 1, unless the price is
 * free.
 */
export function maxCharge({ price, factor, dearest, units, free }: ChargeRate, bounds: UsageBounds): number {
  const { prompt, output, tools = [] } = bounds
  const tier = dearest.findLast(({ above }) => prompt > above) ?? dearest[0]!
  const sum = sumOfCostLines([
    { kind: 'input', count: prompt, price: inputPrice(tier, bounds) },
    { kind: 'output', count: output, price: bounds.hasMedia ? tier.mediaOutput : tier.output },
  ])
  const measured: PricedLine[] = []
  for (const { line, count, priceOf } of units) {
    const used = bounds[count]
    if (used) measured.push({ kind: line, count: used, price: priceOf(price) })
  }
  if (measured.length > 0) sum.raiseTo(sumOfCostLines(measured))
  sum.add(price.request)
  addLines(sum, tools)
  const quota = Number(roundedQuota(sum, factor))
  return Math.min(Math.max(quota, free && sum.digits * factor.digits === 0n ? 0 : 1), MAX_HOLD)
}

const ALL_LIFETIMES = Object.keys(CACHE_WRITE_FIELDS) as readonly CacheWriteLifetime[]

function inputPrice(
  { input, mediaInput, writes }: ChargeRate['dearest'][number],
  { hasMedia, lifetimes = ALL_LIFETIMES }: UsageBounds,
): Decimal {
  let price = hasMedia ? mediaInput : input
  for (const lifetime of lifetimes) if (isGreaterDecimal(writes[lifetime], price)) price = writes[lifetime]
  return price
}

/** The charge for uses of tools alone, in quota units. */
export function chargeOfTools({ factor }: ChargeRate, tools: readonly PricedTool[]): number {
  return inQuota(sumOfCostLines(tools), factor)
}

/** How the provider's prompt cache changed the charge of a call, in quota units. */
export interface CacheSavings {
  /** How much more the tokens that were read from the cache would have cost as ordinary input. */
  readonly cache_saved: number
  /** How much more the tokens that were written to the cache cost than ordinary input. */
  readonly cache_surcharge: number
}

const NO_CACHE: CacheSavings = { cache_saved: 0, cache_surcharge: 0 }

/**
 * Compares the tokens of a call that were read from or written to a cache with plain input at the same rate.
 * Audio and images that were read are compared with plain audio and images. Each sum is rounded once, half
 * away from zero, and never below 0: some prices make reading dearer, or writing cheaper, than input.
 */
export function cacheSavings({ price, factor }: ChargeRate, usage: Usage): CacheSavings {
  if (isPlainText(usage) || CACHED_KINDS.every(({ count }) => !usage[count])) return NO_CACHE
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

/**
 * The charge of an answer from the gateway's cache: a fraction of the original charge, rounded half away from
 * zero.
 */
export function chargeOfCachedAnswer({ digits, scale }: Decimal, original: number): number {
  const unit = powerOfTen(scale)
  return Number((BigInt(original) * digits * 2n + unit) / (unit * 2n))
}

const perMillion = (count: bigint, { digits, scale }: Decimal): Decimal => ({
  digits: count * digits,
  scale: scale + 6,
})

const atLeastZero = (sum: Decimal, factor: Decimal): number => (sum.digits > 0n ? inQuota(sum, factor) : 0)

/**
 * Kinds of tokens that are read from or written to a prompt cache, each with the kind of tokens whose price they
 * would have without a cache, to compute what the cache saved.
 */
const CACHED_KINDS = TOKEN_KINDS.flatMap(({ name, count, cached }) =>
  cached
    ? [
        {
          name,
          count,
          ...cached,
          /**
           * Counts of tokens that are included in `count` but have a separate price, such as cached audio.
           */
          parts: TOKEN_KINDS.filter(({ partOf }) => partOf === name).map((part) => part.count),
        },
      ]
    : [],
)

/** Multiplies a sum in USD by a factor that converts it to quota units, and rounds it. */
function inQuota(sum: Decimal, factor: Decimal): number {
  const quota = Number(roundedQuota(sum, factor))
  if (!Number.isSafeInteger(quota)) throw new RangeError('a charge is beyond what can be counted')
  return quota
}

function roundedQuota(sum: Decimal, factor: Decimal): bigint {
  const { digits, scale } = multiply(sum, factor)
  const unit = powerOfTen(scale)
  return (2n * digits + unit) / (2n * unit)
}

/** Kinds of cost lines of a call. `tool_call` is the price of a call to an MCP server. */
export type CostKind = TokenCostLine | MeasuredUnit['line'] | ToolCostKind | 'request' | 'tool_call'

/** A cost line: something that a call is charged for. */
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
  ...ADVISOR_COST_KINDS,
])

/**
 * The cost lines of a call, without those it did not use. Measured units (`MEASURED_UNITS`) are charged only
 * if no tokens are charged, because none were reported or because they have no price. `form` is the size and
 * quality of generated images; `tools` are uses of the provider's tools, and media charged in addition to
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
  for (const { name, line, count, parts } of INDEPENDENT_KINDS) {
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

/** The price tier that applies to the prompt's size; undefined if the base prices apply. */
function tierOf({ tiers }: Price, usage: Usage): Price['tiers'][number] | undefined {
  if (tiers.length === 0) return undefined
  const prompt = promptTokens(usage)
  return tiers.findLast(({ above }) => prompt > above)
}

/** Exact cost of a line in USD, before the group's ratio. */
function costOfLine({ kind, count, price }: PricedLine): Decimal {
  return { digits: BigInt(count) * price.digits, scale: price.scale + placesOf(kind) }
}

/** Exact sum of cost lines in USD, before the group's ratio. */
export function sumOfCostLines(lines: readonly PricedLine[]): Sum {
  return addLines(new Sum(), lines)
}

/** Adds cost lines to a sum in USD. */
function addLines(sum: Sum, lines: readonly PricedLine[]): Sum {
  // Lines with count 0 are frequent in maximum charges. They are skipped, because creating a BigInt is slow.
  for (const line of lines) if (line.count !== 0) sum.add(costOfLine(line))
  return sum
}

/** Whether a cost line's price is per million of its unit. */
export function isPricedPerMillion(kind: string): boolean {
  return PER_MILLION.has(kind)
}

function placesOf(kind: CostKind): number {
  return PER_MILLION.has(kind) ? 6 : 0
}

/** A cost line in quota units, before the group's ratio is applied. */
interface CostLine extends PricedLine {
  /** Exact cost of the line in quota units. */
  readonly quota: Decimal
}

/** The cost of a call before the group's ratio is applied. */
interface Cost {
  readonly lines: readonly CostLine[]
  /** Exact sum of the lines in quota units. */
  readonly sum: Decimal
  /** Number of prompt tokens above which these prices apply; null for the base prices. */
  readonly tierAbove: number | null
}

/**
 * The cost lines of a call in quota units. Their sum times the group's ratio, rounded once, is the charge.
 */
export function costLinesOfCall(
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
    sum: multiply(sumOfCostLines(lines), unit),
    tierAbove: tierOf(price, usage)?.above ?? null,
  }
}

/**
 * A cost times the group's ratio in quota units, rounded half away from zero. Unlike a charge it may be 0.
 */
export function roundedCost({ sum }: Pick<Cost, 'sum'>, ratio: Decimal): number {
  return Number(divide(multiply(sum, ratio), ONE, 0).digits)
}
