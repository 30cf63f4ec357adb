import { type Decimal, Sum } from './decimal.ts'
import { type ImageForm, imagePrice } from './image-price.ts'
import type { Price } from './price.ts'
import { TOKEN_KINDS, type TokenLine, type TokenPrices, WHOLE_KINDS } from './token-kinds.ts'
import { measuredMedia, type PricedTool, type ToolCostKind } from './tool-use.ts'
import { promptTokens, type Usage } from './usage.ts'

/** Kinds of things that a call is charged for. */
export type CostKind = TokenLine | 'second' | 'character' | 'image' | 'search_unit' | ToolCostKind | 'request'

/** Something that a call is charged for. */
export interface PricedLine {
  readonly kind: CostKind
  readonly count: number
  /** USD per million tokens or characters, or per one of anything else. */
  readonly price: Decimal
}

const PER_MILLION: ReadonlySet<string> = new Set<CostKind>([
  ...TOKEN_KINDS.map(({ line }) => line),
  'character',
  'image_generation_input',
  'image_generation_image_input',
  'image_generation_output',
])

/**
 * Lists what a call is charged for, without what it did not use. Seconds, characters, images and search units
 * count where no tokens do: either none are reported, or they have no price. `form`: size and quality of the
 * images; `tools`: uses of the provider's, and media that are priced beside tokens.
 */
export function linesOf(
  price: Price,
  usage: Usage,
  form: ImageForm,
  tools: readonly PricedTool[],
): PricedLine[] {
  const lines = tokenLines((tierOf(price, usage) ?? price).tokens, usage)
  const add = (kind: CostKind, count: number, each: Decimal): void => {
    if (count !== 0) lines.push({ kind, count, price: each })
  }
  if (lines.every((line) => line.price.digits === 0n)) {
    const { seconds, images } = measuredMedia(usage, tools)
    add('second', seconds, price.second)
    add('character', usage.characters, price.characters)
    if (images !== 0) add('image', images, imagePrice(price.image, form))
    add('search_unit', usage.searchUnits, price.search_unit)
  }
  for (const tool of tools) add(tool.kind, tool.count, tool.price)
  add('request', price.request.digits === 0n ? 0 : 1, price.request)
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

/** The tier whose prices hold for a usage; undefined for the prices of all prompts. */
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
  // Skips zero, which most counts of a hold are, as creating a BigInt is slow.
  for (const line of lines) if (line.count !== 0) sum.add(costOfLine(line))
  return sum
}

/** Whether the price of a line is for a million. */
export function isPerMillion(kind: string): boolean {
  return PER_MILLION.has(kind)
}

function placesOf(kind: CostKind): number {
  return PER_MILLION.has(kind) ? 6 : 0
}
