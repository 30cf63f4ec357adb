import type { ToolKind } from '@sluice/wire/tool-use'
import type { Decimal } from './decimal.ts'

/** USD per use of a tool; a missing kind has the price of the vendor's list. */
export type ToolPrices = Readonly<Partial<Record<ToolKind, Decimal>>>

/** Kinds of cost caused by tools: their uses, and the tokens of pictures, priced per million. */
export type ToolCostKind =
  | ToolKind
  | 'image_generation_input'
  | 'image_generation_image_input'
  | 'image_generation_output'

/** Media of a stream without usage, which have their own price in addition to the tokens of its text. */
export type MediaCostKind = 'second' | 'image'

/** Uses of a tool, or media, with the price of each in USD; for tokens, the price per million. */
export interface PricedTool {
  readonly kind: ToolCostKind | MediaCostKind
  readonly count: number
  readonly price: Decimal
}
