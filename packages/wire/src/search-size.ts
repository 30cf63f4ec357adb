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
