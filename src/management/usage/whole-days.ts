const DAY_MS = 86_400_000

/** A period split into the whole days (UTC) in it, and the rest. */
export interface WholeDays {
  /** Days since 1970-01-01, both included; undefined where there is none. A missing bound is open. */
  readonly days: { readonly first?: number | undefined; readonly last?: number | undefined } | undefined
  /** The partial first and last days. */
  readonly edges: readonly { readonly fromMs: number; readonly beforeMs: number }[]
}

/**
 * Splits a period. `fromMs` is included, `beforeMs` is not; undefined is open, and so is an end in the
 * future, since today's sums end now.
 */
export function wholeDays(
  { fromMs, beforeMs }: { readonly fromMs?: number | undefined; readonly beforeMs?: number | undefined },
  nowMs: number,
): WholeDays {
  const endMs = beforeMs === undefined || beforeMs > nowMs ? undefined : beforeMs
  const first = fromMs === undefined ? undefined : Math.ceil(fromMs / DAY_MS)
  const endDay = endMs === undefined ? undefined : Math.floor(endMs / DAY_MS)
  if (
    fromMs !== undefined &&
    endMs !== undefined &&
    first !== undefined &&
    endDay !== undefined &&
    first > endDay
  )
    return { days: undefined, edges: fromMs < endMs ? [{ fromMs, beforeMs: endMs }] : [] }
  const edges: { fromMs: number; beforeMs: number }[] = []
  if (fromMs !== undefined && first !== undefined && first * DAY_MS > fromMs)
    edges.push({ fromMs, beforeMs: first * DAY_MS })
  if (endMs !== undefined && endDay !== undefined && endDay * DAY_MS < endMs)
    edges.push({ fromMs: endDay * DAY_MS, beforeMs: endMs })
  const isNone = first !== undefined && endDay !== undefined && first === endDay
  return { days: isNone ? undefined : { first, last: endDay === undefined ? undefined : endDay - 1 }, edges }
}
