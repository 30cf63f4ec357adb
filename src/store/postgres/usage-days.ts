/** Days since 1970-01-01, UTC: from the first one up to, and without, the end. */
export interface DayRange {
  readonly firstDay: number
  readonly endDay: number
}

/** So many partitions of the past there are at most, about. */
const MAX_PARTITIONS = 200

/**
 * How many days a partition holds where rows are kept for so many: one, unless that made too many partitions.
 */
export function daysPerPartition(keptDays: number): number {
  return Math.ceil(keptDays / MAX_PARTITIONS)
}

/**
 * The ranges that cover what of `wanted` is not covered, each of at most `width` days, in order. None
 * overlaps with one that is there, whatever width those have.
 */
export function missingRanges(
  covered: readonly DayRange[],
  wanted: DayRange,
  width: number,
): readonly DayRange[] {
  const missing: DayRange[] = []
  let firstDay = wanted.firstDay
  while (firstDay < wanted.endDay) {
    const here = covered.find((range) => range.firstDay <= firstDay && firstDay < range.endDay)
    if (here) {
      firstDay = here.endDay
      continue
    }
    const next = Math.min(...covered.map((range) => range.firstDay).filter((day) => day > firstDay))
    const endDay = Math.min(firstDay + width, next)
    missing.push({ firstDay, endDay })
    firstDay = endDay
  }
  return missing
}
