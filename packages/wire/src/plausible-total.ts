/** Part of the prompt or output that some upstreams count in addition to it instead of within it. */
export interface Detail {
  readonly tokens: number
  /** Whether the part exceeds the whole. */
  readonly isLarger: boolean
}

/** Creates a detail of this many tokens of a whole. */
export function part(tokens: number, whole: number): Detail {
  return { tokens, isLarger: tokens > whole }
}

/** Sum of the tokens of several details. */
export function sumOf(details: readonly Detail[]): number {
  return details.reduce((sum, { tokens }) => sum + tokens, 0)
}

/**
 * Finds the details that a total includes in addition to its counts, which it exceeds by `excess`: those
 * whose sum is exactly `excess`, preferring details larger than their whole, then the given order. If there
 * are none, returns the details larger than their whole, if all of them fit.
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
