import { startMsOfCall } from '../store/usage-id.ts'

/** A day in milliseconds. */
export const DAY_MS = 86_400_000

/**
 * Days after which files and partitions are removed. An entry is in that of the first that covers its
 * retention, so that a call can be found with a few lookups.
 */
const LIFETIMES = [
  2, 3, 4, 6, 8, 11, 15, 22, 31, 46, 61, 91, 121, 181, 271, 366, 549, 731, 1_096, 1_827, 2_557, 3_653,
] as const

/** The day since 1970 of a time. */
export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS)
}

/** The first day on which nothing of a call's content is kept any more. */
export function endDayOf(startedMs: number, keepMs: number): number {
  return dayOf(startedMs) + Math.ceil(keepMs / DAY_MS) + 1
}

/** The day on which the file or partition of an entry is removed. */
export function dropDayOf(startedMs: number, keepMs: number): number {
  const days = endDayOf(startedMs, keepMs) - dayOf(startedMs)
  return dayOf(startedMs) + (LIFETIMES.find((lifetime) => lifetime >= days) ?? days)
}

/** The days that `dropDayOf` may give for a call, by its id; none for any other text. */
export function dropDaysOfCall(id: string): number[] {
  const startedMs = startMsOfCall(id)
  return startedMs === undefined ? [] : LIFETIMES.map((lifetime) => dayOf(startedMs) + lifetime)
}

/** `2026-11-25` */
export function dayText(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10)
}
