/** Part of prompt or output that some upstreams count in addition to it. */
export interface Detail {
  readonly tokens: number
  /** Whether the part exceeds its whole. */
  readonly isLarger: boolean
}

/** Detail of so many tokens of a whole. */
export function part(tokens: number, whole: number): Detail {
  return { tokens, isLarger: tokens > whole }
}

/** Sum of the tokens of several details. */
export function sumOf(details: readonly Detail[]): number {
  return details.reduce((sum, { tokens }) => sum + tokens, 0)
}

/**
 * Finds the details that a total has in addition to its parts, which it exceeds by `excess`: those that sum
 * to exactly that, ones larger than their whole first, then in the order given. If there are none, returns
 * those larger than their whole, if all of them fit.
 */
export function explaining(excess: number, details: readonly Detail[]): readonly Detail[] {
  if (excess <= 0) return []
  const candidates = details
    .filter(({ tokens }) => tokens > 0)
    .sort((a, b) => Number(b.isLarger) - Number(a.isLarger))
  for (let chosen = 1; chosen < 1 << candidates.length; chosen++) {
    const some = candidates.filter((_, place) => (chosen & (1 << place)) !== 0)
    if (sumOf(some) === excess) return some
  }
  const larger = candidates.filter(({ isLarger }) => isLarger)
  return sumOf(larger) <= excess ? larger : []
}
