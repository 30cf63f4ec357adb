/** Median and quartiles of some values. */
export interface Spread {
  readonly median: number
  readonly p25: number
  readonly p75: number
}

/** Median and quartiles; undefined if there are no values. */
export function spread(values: readonly number[]): Spread | undefined {
  if (values.length === 0) return undefined
  const sorted = values.toSorted((a, b) => a - b)
  return { median: quantile(sorted, 0.5), p25: quantile(sorted, 0.25), p75: quantile(sorted, 0.75) }
}

/** Quantile of sorted values, with linear interpolation; 0 if there are none. */
export function quantile(sorted: readonly number[], share: number): number {
  const at = share * (sorted.length - 1)
  const below = sorted[Math.floor(at)] ?? 0
  const above = sorted[Math.ceil(at)] ?? below
  return below + (above - below) * (at - Math.floor(at))
}
