import { addLines, linesOf, type PricedLine, sumOfLines } from './cost-lines.ts'
import { type Decimal, multiply, powerOfTen } from './decimal.ts'
import type { ImageForm } from './image-price.ts'
import type { Rate } from './price.ts'
import { MEASURED_UNITS, type MeasuredUnit } from './price-units.ts'
import type { PricedTool } from './tool-use.ts'
import { promptTokens, type Usage } from '@sluice/wire/usage'

/** The maximum that a call is expected to use; absent counts are 0. */
export interface UsageBounds extends Partial<Pick<Usage, MeasuredUnit['count']>> {
  readonly prompt: number
  readonly output: number
  readonly tools?: readonly PricedTool[]
  /** Whether tokens of the prompt or of the output may be audio or images. */
  readonly hasMedia?: boolean
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
    { kind: 'input', count: prompt, price: bounds.hasMedia ? tier.mediaInput : tier.input },
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

/** Charge of tool uses alone. */
export function chargeOfTools({ factor }: Rate, tools: readonly PricedTool[]): number {
  return inQuota(sumOfLines(tools), factor)
}

/** A sum in USD, converted to quota units and rounded. */
function inQuota(sum: Decimal, factor: Decimal): number {
  const { digits, scale } = multiply(sum, factor)
  const unit = powerOfTen(scale)
  const quota = Number((2n * digits + unit) / (2n * unit))
  if (!Number.isSafeInteger(quota)) throw new RangeError('a charge is beyond what can be counted')
  return quota
}
