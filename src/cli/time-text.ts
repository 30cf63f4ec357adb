import { MAX_TIME_S } from '../domain/calendar.ts'

/** Formats Unix seconds: `2027-01-31 10:00Z`, or `never` for −1. Keys may have expiries that no `Date` can hold. */
export function timeText(seconds: number): string {
  if (seconds === -1) return 'never'
  const time = new Date(Math.min(seconds, MAX_TIME_S) * 1000)
  return `${time.toISOString().slice(0, 16).replace('T', ' ')}Z`
}
