import type { SearchState } from './search-state.ts'
import { isoDay, parseDayOrHour, startOfDay, startOfMonth, startOfWeek } from './time.ts'

/** The periods that sums of usage can have, by their names in the page's URL. */
export const USAGE_PERIODS = [
  'hour',
  'today',
  'yesterday',
  '7d',
  '30d',
  '90d',
  'week',
  'month',
  'last-month',
  'custom',
] as const

/** The periods that lists of calls can have, by their names in the page's URL. */
export const LOG_PERIODS = [...USAGE_PERIODS, 'all'] as const

/** A period of calls or sums. */
export type Period = (typeof LOG_PERIODS)[number]

/** A period in Unix seconds. If `from` or `to` is undefined, the period is not limited on that side. */
export interface TimeRange {
  readonly from: number | undefined
  /** The period ends just before this time, in Unix seconds. */
  readonly to: number | undefined
}

const HOUR_S = 3600
const DAY_S = 86_400
const DAYS_BEFORE = { today: 0, '7d': 6, '30d': 29, '90d': 89 } as const

/** The period in the page's URL if it is in `periods`, else `otherwise`. */
export function periodFromUrl<Name extends Period>(
  periods: readonly Name[],
  { period }: SearchState,
  otherwise: Name,
): Name {
  return periods.find((one) => one === period) ?? otherwise
}

/**
 * The start and end of a period in a time zone. A custom period includes both of the days in the page's URL.
 */
export function timeRangeOf(
  period: Period,
  search: SearchState,
  now: number,
  timeZone: string,
  locale: string,
): TimeRange {
  const today = startOfDay(now, timeZone)
  switch (period) {
    case 'all':
      return { from: undefined, to: undefined }
    case 'hour':
      return { from: now - HOUR_S, to: undefined }
    case 'yesterday':
      return { from: startOfDay(today - 1, timeZone), to: today }
    case 'week':
      return { from: startOfWeek(now, locale, timeZone), to: undefined }
    case 'month':
      return { from: startOfMonth(now, timeZone), to: undefined }
    case 'last-month': {
      const month = startOfMonth(now, timeZone)
      return { from: startOfMonth(month - 1, timeZone), to: month }
    }
    case 'custom':
      return chosenSpan(search, now, timeZone)
    case 'today':
    case '7d':
    case '30d':
    case '90d':
      return { from: startOfDay(now - DAYS_BEFORE[period] * DAY_S, timeZone), to: undefined }
  }
}

function chosenSpan(search: SearchState, now: number, timeZone: string): TimeRange {
  const first = parseDayOrHour(search['from'], timeZone)
  const last = parseDayOrHour(search['to'], timeZone)
  const start = first?.from ?? startOfDay(now - DAYS_BEFORE['30d'] * DAY_S, timeZone)
  // The gateway knows no time before 1970.
  const from = start > now ? startOfDay(now, timeZone) : Math.max(start, 0)
  if (!last || last.to > now) return { from, to: undefined }
  return { from, to: Math.max(last.to, first?.from === from ? first.to : from + DAY_S) }
}

/** The first and the last day of a period, both included, in the format of the page's URL: `2026-11-01`. */
export function dayRangeOf(
  { from, to }: TimeRange,
  now: number,
  timeZone: string,
): { readonly from: string; readonly to: string } {
  return {
    from: isoDay(from ?? now - DAYS_BEFORE['30d'] * DAY_S, timeZone),
    to: isoDay(to === undefined ? now : to - 1, timeZone),
  }
}
