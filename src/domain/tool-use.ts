import type { ToolKind } from '@sluice/wire/tool-use'
import type { Decimal } from './decimal.ts'

/** USD per use, by kind of tool; for a missing kind, the vendor's list price applies. */
export type ToolPrices = Readonly<Partial<Record<ToolKind, Decimal>>>

/** Kinds of costs that tools cause: their uses, and the tokens of generated images. */
export type ToolCostKind =
  | ToolKind
  | 'image_generation_input'
  | 'image_generation_image_input'
  | 'image_generation_output'
  | AdvisorCostKind

/** Tokens of another model that a provider asks during a call. */
export const ADVISOR_COST_KINDS = [
  'advisor_input',
  'advisor_cached',
  'advisor_cache_write',
  'advisor_output',
] as const

/** Kind of tokens of another model that a provider asks during a call. */
type AdvisorCostKind = (typeof ADVISOR_COST_KINDS)[number]

/** Media in a stream that reports no usage; they are charged in addition to the tokens of its text. */
export type MediaCostKind = 'second' | 'image'

/** Uses of a tool, or media, with the price of one in USD. For tokens, the price is per million. */
export interface PricedTool {
  readonly kind: ToolCostKind | MediaCostKind
  readonly count: number
  readonly price: Decimal
}
