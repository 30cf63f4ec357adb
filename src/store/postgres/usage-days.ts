/** Range of days since 1970-01-01, UTC; excludes the end. */
export interface DayRange {
  readonly firstDay: number
  readonly endDay: number
}

/** Approximate maximum number of partitions of the past. */
const MAX_PARTITIONS = 200

/** Returns the days per partition if rows are kept for `keptDays`: one, or more to limit their number. */
export function daysPerPartition(keptDays: number): number {
  return Math.ceil(keptDays / MAX_PARTITIONS)
}

/**
 * Lists the ranges that are missing to cover `wanted`, in order, each of at most `width` days. Existing
 * ranges may have any width; new ones do not overlap them.
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
