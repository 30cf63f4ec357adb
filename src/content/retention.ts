import { startMsOfCall } from '../store/usage-id.ts'

/** A day in milliseconds. */
export const DAY_MS = 86_400_000

/**
 * Numbers of days after which files and partitions are removed. An entry goes into the first that covers its
 * retention. Because there are few, a call's content can be found with a few lookups.
 */
const LIFETIMES = [
  2, 3, 4, 6, 8, 11, 15, 22, 31, 46, 61, 91, 121, 181, 271, 366, 549, 731, 1_096, 1_827, 2_557, 3_653,
] as const

/** The day of a time, counted from 1970-01-01. `ms` is in Unix milliseconds. */
export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS)
}

/** The first day on which a call's content has expired, counted from 1970-01-01. */
export function expiryDayOf(startedMs: number, keepMs: number): number {
  return dayOf(startedMs) + Math.ceil(keepMs / DAY_MS) + 1
}

/** The day on which an entry's file or partition is removed, counted from 1970-01-01. */
export function removalDayOf(startedMs: number, keepMs: number): number {
  const days = expiryDayOf(startedMs, keepMs) - dayOf(startedMs)
  return dayOf(startedMs) + (LIFETIMES.find((lifetime) => lifetime >= days) ?? days)
}

/** All days that `removalDayOf` could return for the call with this id; none if the text is not a call id. */
export function removalDaysOfCall(id: string): number[] {
  const startedMs = startMsOfCall(id)
  return startedMs === undefined ? [] : LIFETIMES.map((lifetime) => dayOf(startedMs) + lifetime)
}

/** A day as text: `2026-11-25`. */
export function dayText(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10)
}
