import { costOfLine, linesOf, type PricedLine, sumOfLines, tierOf } from './cost-lines.ts'
import { type Decimal, divide, multiply, ONE } from './decimal.ts'
import type { ImageForm } from './image-price.ts'
import type { Price } from './price.ts'
import type { PricedTool } from './tool-use.ts'
import type { Usage } from '@sluice/wire/usage'

/** One line of a call's cost, before the ratio of its group. */
export interface CostLine extends PricedLine {
  /** Quota units, exact. */
  readonly quota: Decimal
}

/** Cost of a call before the ratio of its group. */
export interface Cost {
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
