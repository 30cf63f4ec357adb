import { Calendar } from '../domain/calendar.ts'

/**
 * A period in Unix seconds, including both ends. Without `start` it begins with the oldest data; without
 * `end` it lasts until now.
 */
interface NamedPeriod {
  readonly start?: number | undefined
  readonly end?: number | undefined
  readonly tz?: string | undefined
}

/**
 * The name of a CSV file. For a whole calendar month in the time zone it contains the month
 * (`sluice-calls-2026-11.csv`), otherwise the first and the last day.
 */
export function csvName(what: string, { start, end, tz = 'UTC' }: NamedPeriod, nowMs: number): string {
  if (!start) return `sluice-${what}.csv`
  const calendar = calendarOf(tz)
  const startMs = start * 1000
  const lastMs = end ? end * 1000 : nowMs
  const first = calendar.format(startMs).slice(0, 10)
  const isMonth =
    calendar.startOf('month', startMs) === startMs && calendar.nextStart('month', startMs) === lastMs + 1000
  if (isMonth) return `sluice-${what}-${first.slice(0, 7)}.csv`
  return `sluice-${what}-${first}_${calendar.format(lastMs).slice(0, 10)}.csv`
}

function calendarOf(tz: string): Calendar {
  try {
    return new Calendar(tz)
  } catch {
    return new Calendar('UTC')
  }
}
