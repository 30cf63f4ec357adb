/** `docs/api.md: Limits`, web search max_uses, by `search_context_size`; from few to many. */
const SIZES = [
  ['low', 1],
  ['medium', 5],
  ['high', 10],
] as const

/** Searches that a size stands for, by its name. */
export const SEARCHES: ReadonlyMap<string, number> = new Map(SIZES)

/** The smallest size that allows as many searches. */
export function sizeOf(maxUses: number): string {
  return SIZES.find(([, uses]) => maxUses <= uses)?.[0] ?? 'high'
}
