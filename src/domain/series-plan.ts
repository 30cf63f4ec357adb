import type { CalendarStep } from './calendar.ts'

const SLOT_S = 1_800
const SLOTS_PER_DAY = 48

/** A half hour that belongs to a different step than its day is counted for, or whose day is not counted. */
export interface MovedSlot {
  /** Number of half hours since 1970-01-01, UTC. */
  readonly slot: number
  /** Index of the step for which it is counted with its day; -1 for none. */
  readonly from: number
  /** Index of the step to which it belongs; -1 for none. */
  readonly to: number
}

/** Sums that make up a series: whole days (UTC), corrected by half hours at the bounds of steps. */
export interface SeriesPlan {
  /** First of the counted days. */
  readonly firstDay: number
  /** Index of the step for which each day is counted. */
  readonly days: readonly number[]
  /** Sorted by slot. */
  readonly moved: readonly MovedSlot[]
  /** Whether the sums match the period exactly to the half hour. */
  readonly isExact: boolean
}

/** Period of a plan, in Unix seconds. */
export interface PlannedPeriod {
  readonly fromS: number
  /** Exclusive. */
  readonly toS: number
  /** Starts of the steps; the first one is not after `fromS`. */
  readonly starts: readonly number[]
  readonly step: CalendarStep
}

/** Days for which sums exist, counted from 1970-01-01, UTC; infinite if there are none. */
export interface Coverage {
  /** First day with half-hour sums; every later day has them too. */
  readonly firstSlotDay: number
  readonly firstDay: number
}

/**
 * Plans which sums make up a period. A day is counted for the step that contains most of it, if half hours
 * can correct that; days without half hours are counted for the step that contains their noon.
 */
export function planSeries(
  { fromS, toS, starts, step }: PlannedPeriod,
  { firstSlotDay, firstDay }: Coverage,
): SeriesPlan {
  const firstSlot = Math.floor(fromS / SLOT_S)
  const endSlot = Math.ceil(toS / SLOT_S)
  const isAligned = (seconds: number): boolean => seconds % SLOT_S === 0
  let isExact = isAligned(fromS) && isAligned(toS) && starts.slice(1).every(isAligned)
  const stepOf = (slot: number): number =>
    slot < firstSlot || slot >= endSlot ? -1 : stepIndex(starts, slot * SLOT_S)
  const days: number[] = []
  const moved: MovedSlot[] = []
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

/** The index of the last step that starts at or before a time; 0 before the first. Unix seconds. */
export function stepIndex(starts: readonly number[], seconds: number): number {
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
