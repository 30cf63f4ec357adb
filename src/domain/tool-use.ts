import type { Decimal } from './decimal.ts'

/** Kinds of tools that providers run during a call, as `price.tools` in gateway.yaml names them. */
export const TOOL_KINDS = [
  'image_generation',
  'code_interpreter',
  'code_execution',
  'file_search',
  'web_search',
  'web_fetch',
  'google_search',
  'google_maps',
  'url_context',
  'mcp',
] as const

/** Kind of a tool that a provider runs. */
export type ToolKind = (typeof TOOL_KINDS)[number]

/** USD for one use of a tool; a kind that is absent costs what the vendor's list says. */
export type ToolPrices = Readonly<Partial<Record<ToolKind, Decimal>>>

/** Tool of a provider's own that a request offers. */
export interface OfferedTool {
  /** Type of the tool as the request states it, such as `web_search_20250305`. */
  readonly type: string
  /** The most uses that the request allows; undefined where it states none. */
  readonly maxUses?: number | undefined
  /** Form of each use, as in `ToolUse`; undefined where it is the provider's choice. */
  readonly form?: string | undefined
}

/** Tools of the provider's own in a request. */
export interface ProviderTools {
  readonly tools: readonly OfferedTool[]
  /** The most uses of all of them together that the request allows; undefined where it states none. */
  readonly maxCalls?: number | undefined
}

/** Tokens of the model that draws pictures for another model. */
export interface PictureTokens {
  readonly text: number
  readonly image: number
  readonly output: number
}

/** Uses of a tool, as an answer tells them. */
export interface ToolUse {
  readonly kind: ToolKind
  readonly count: number
  /** Form that a list price depends on: `1024x1024/low` of a picture, `4g` of a container. */
  readonly form?: string | undefined
  /** Model that drew pictures; undefined where the answer does not name it. */
  readonly model?: string | undefined
  /** Tokens of all pictures, where the answer tells them. */
  readonly tokens?: PictureTokens | undefined
  /** The answer only cites sources: a use where the request offered the tool. */
  readonly isCited?: true
}

/** Kinds of cost that tools cause: their uses, and the tokens of pictures by the million. */
export type ToolCostKind =
  | ToolKind
  | 'image_generation_input'
  | 'image_generation_image_input'
  | 'image_generation_output'

/** Media of a stream without usage that have a price of their own, beside the tokens of its text. */
export type MediaCostKind = 'second' | 'image'

/** Uses of a tool, or media, with the price of each in USD; of tokens, the price of a million. */
export interface PricedTool {
  readonly kind: ToolCostKind | MediaCostKind
  readonly count: number
  readonly price: Decimal
}

/** Uses without those of other lists that are lower: the larger number of each kind and form counts. */
export function mergedUses(one: readonly ToolUse[], other: readonly ToolUse[]): readonly ToolUse[] {
  if (other.length === 0) return one
  const total = (uses: readonly ToolUse[], kind: ToolKind): number =>
    uses.reduce((sum, use) => sum + (use.kind === kind ? use.count : 0), 0)
  const kinds = new Set([...one, ...other].map(({ kind }) => kind))
  return [...kinds].flatMap((kind) => {
    const larger = total(other, kind) > total(one, kind) ? other : one
    return larger.filter((use) => use.kind === kind)
  })
}
