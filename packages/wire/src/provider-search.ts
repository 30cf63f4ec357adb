import type { ConversionProtocol } from './protocols.ts'

/** Web search that a provider ran while it replied, as far as several dialects can express it. */
export interface SearchPart {
  readonly kind: 'search'
  /**
   * Dialect of the provider that ran the search. In messages, the opaque parts before it contain what that
   * provider wants back.
   */
  readonly protocol: ConversionProtocol
  /** Empty if the provider does not report it. */
  readonly query: string
  /** Pages that were found; none if the provider does not report them. */
  readonly pages: readonly FoundPage[]
  readonly isFailed: boolean
}

/** Web page that a search found. */
export interface FoundPage {
  readonly url: string
  /** Empty if the provider does not report it. */
  readonly title: string
}

/** `docs/api.md: Limits`, web search max_uses, by `search_context_size`; ascending. */
const SIZES = [
  ['low', 1],
  ['medium', 5],
  ['high', 10],
] as const

/** Maximum number of searches by the name of a size. */
export const SEARCHES: ReadonlyMap<string, number> = new Map(SIZES)

/** The smallest size that allows this many searches. */
export function sizeOf(maxUses: number): string {
  return SIZES.find(([, uses]) => maxUses <= uses)?.[0] ?? 'high'
}
