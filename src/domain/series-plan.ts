import type { CalendarStep } from './calendar.ts'

const SLOT_S = 1_800
const SLOTS_PER_DAY = 48

/**
 * A half hour whose sum is moved to another interval of the series, because the sum of its whole day was
 * added to the wrong one.
 */
export interface MovedHalfHour {
  /** The half hour, as the number of half hours since 1970-01-01 UTC. */
  readonly slot: number
  /** Index of the interval to which its day was added; -1 for none. */
  readonly from: number
  /** Index of the interval to which the half hour belongs; -1 for none. */
  readonly to: number
}

/**
 * Which stored sums make up a time series: sums of whole days (UTC), corrected by sums of half hours at the
 * bounds of intervals.
 */
export interface SeriesPlan {
  /** The first day that is added, as the number of days since 1970-01-01 UTC. */
  readonly firstDay: number
  /** For each day from `firstDay` on: index of the interval to which the day's sum is added; -1 for none. */
  readonly days: readonly number[]
  /** Half hours that must be moved between intervals, in ascending order. */
  readonly moved: readonly MovedHalfHour[]
  /**
   * Whether the result is exact. Otherwise a bound lies within a half hour, or within a day without half-hour
   * sums.
   */
  readonly isExact: boolean
}

/** The period and the intervals of a time series, in Unix seconds. */
export interface PlannedPeriod {
  readonly fromS: number
  /** End of the period, exclusive. */
  readonly toS: number
  /** Starts of the intervals in ascending order; the first one is at or before `fromS`. */
  readonly starts: readonly number[]
  readonly step: CalendarStep
}

/**
 * The first days for which sums are stored, as numbers of days since 1970-01-01 UTC; infinite if there are
 * none.
 */
export interface SumsCoverage {
  /** First day with half-hour sums; all later days have them too. */
  readonly firstSlotDay: number
  readonly firstDay: number
}

/**
 * Plans which stored sums make up a time series. The sum of a day is added to the interval that contains most
 * of the day, if half-hour sums can correct the rest; otherwise to the interval that contains its noon.
 */
export function planTimeSeries(
  { fromS, toS, starts, step }: PlannedPeriod,
  { firstSlotDay, firstDay }: SumsCoverage,
): SeriesPlan {
  const firstSlot = Math.floor(fromS / SLOT_S)
  const endSlot = Math.ceil(toS / SLOT_S)
  const isAligned = (seconds: number): boolean => seconds % SLOT_S === 0
  let isExact = isAligned(fromS) && isAligned(toS) && starts.slice(1).every(isAligned)
  const stepOf = (slot: number): number =>
    slot < firstSlot || slot >= endSlot ? -1 : intervalIndexAt(starts, slot * SLOT_S)
  const days: number[] = []
  const moved: MovedHalfHour[] = []
  let firstCounted = 0
  const count = (day: number, index: number): void => {
    if (days.length === 0) firstCounted = day
    while (days.length < day - firstCounted) days.push(-1)
    days.push(index)
  }
  for (let day = Math.floor(firstSlot / SLOTS_PER_DAY); day * SLOTS_PER_DAY < endSlot; day += 1) {
    if (day < firstDay) continue
    const start = day * SLOTS_PER_DAY
    const [first, last] = [stepOf(start), stepOf(start + SLOTS_PER_DAY - 1)]
    const hasSlots = day >= firstSlotDay
    if (first === last && first !== -1) {
      count(day, first)
      continue
    }
    if (!hasSlots) {
      isExact = false
      const noon = stepOf(start + SLOTS_PER_DAY / 2)
      if (noon !== -1) count(day, noon)
      continue
    }
    const steps = Array.from({ length: SLOTS_PER_DAY }, (_, index) => stepOf(start + index))
    const counted = step !== 'hour' ? mostFrequent(steps) : -1
    if (counted !== -1) count(day, counted)
    for (const [index, to] of steps.entries())
      if (to !== counted) moved.push({ slot: start + index, from: counted, to })
  }
  return { firstDay: firstCounted, days, moved, isExact }
}

/**
 * The index of the last interval that starts at or before a time in Unix seconds; 0 if the time is before the
 * first.
 */
export function intervalIndexAt(starts: readonly number[], seconds: number): number {
  let [low, high] = [0, starts.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((starts[middle] ?? 0) <= seconds) low = middle + 1
    else high = middle
  }
  return Math.max(0, low - 1)
}

function mostFrequent(values: readonly number[]): number {
  const counts = new Map<number, number>()
  let best = -1
  for (const value of values) {
    const count = (counts.get(value) ?? 0) + 1
    counts.set(value, count)
    if (count > (counts.get(best) ?? 0)) best = value
  }
  return best
}
