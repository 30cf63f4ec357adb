import { type Decimal, Sum } from './decimal.ts'
import type { ImageForm } from './image-price.ts'
import type { Price } from './price.ts'
import { MEASURED_UNITS, type MeasuredUnit } from './price-units.ts'
import { TOKEN_KINDS, type TokenLine, type TokenPrices, WHOLE_KINDS } from './token-kinds.ts'
import type { PricedTool, ToolCostKind } from './tool-use.ts'
import { promptTokens, type Usage } from '@sluice/wire/usage'

/** Kinds of items that a call is charged for. */
export type CostKind = TokenLine | MeasuredUnit['line'] | ToolCostKind | 'request'

/** Item that a call is charged for. */
export interface PricedLine {
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
export function linesOf(
  price: Price,
  usage: Usage,
  form: ImageForm,
  tools: readonly PricedTool[],
): PricedLine[] {
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
export function tierOf({ tiers }: Price, usage: Usage): Price['tiers'][number] | undefined {
  if (tiers.length === 0) return undefined
  const prompt = promptTokens(usage)
  return tiers.findLast(({ above }) => prompt > above)
}

/** Cost of one line in USD, exact. */
export function costOfLine({ kind, count, price }: PricedLine): Decimal {
  return { digits: BigInt(count) * price.digits, scale: price.scale + placesOf(kind) }
}

/** Sum of lines in USD, exact. */
export function sumOfLines(lines: readonly PricedLine[]): Sum {
  return addLines(new Sum(), lines)
}

/** Adds lines to a sum in USD. */
export function addLines(sum: Sum, lines: readonly PricedLine[]): Sum {
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
