import { MAX_TIME_S } from '../../src/domain/calendar.ts'

const MINUTE_S = 60
const HOUR_S = 3600
const DAY_S = 86_400

/**
 * A date or a time by these options. English ones have the day before the month, as in the sentences around them, and
 * three letters for each month: British English would have "Sept" beside "Oct". Keys may have expiries that no `Date` can hold.
 */
export function formatDate(unixSeconds: number, locale: string, options: Intl.DateTimeFormatOptions): string {
  const english = locale === 'en'
  return new Intl.DateTimeFormat(english ? 'en-GB' : locale, options)
    .formatToParts(Math.min(unixSeconds, MAX_TIME_S) * 1000)
    .map(({ type, value }) => (english && type === 'month' ? value.slice(0, 3) : value))
    .join('')
}

/** A time in a time zone, to the second: `1 Dec 2026, 09:31:26`; `unixSeconds` of 0 or less means no time. */
export function formatTime(unixSeconds: number, locale: string, timeZone: string): string {
  return formatDate(unixSeconds, locale, {
    timeZone,
    year: 'numeric',
    // The order of two numbers could be read either way.
    ...(locale === 'en' ? { month: 'short', day: 'numeric' } : { month: '2-digit', day: '2-digit' }),
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  })
}

/** The day of a time in a time zone, without its year: `1 Dec`. */
export function formatDay(unixSeconds: number, locale: string, timeZone: string): string {
  return formatDate(unixSeconds, locale, { timeZone, day: 'numeric', month: 'short' })
}

/** The time of day of a time in a time zone, to the minute: `09:31`. */
export function formatMinute(unixSeconds: number, locale: string, timeZone: string): string {
  return formatDate(unixSeconds, locale, { timeZone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
}

/**
 * A time of day, `09:31:26`. If it is not today, the date comes first: `23 Nov, 09:31:26`, with the year if
 * that is not this year.
 */
export function formatClock(
  unixSeconds: number,
  nowSeconds: number,
  locale: string,
  timeZone: string,
): string {
  const [day, today] = [isoDay(unixSeconds, timeZone), isoDay(nowSeconds, timeZone)]
  return formatDate(unixSeconds, locale, {
    timeZone,
    ...(day.slice(0, 4) !== today.slice(0, 4) && { year: 'numeric' }),
    ...(day !== today && { month: 'short', day: 'numeric' }),
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  })
}

/** A time relative to now: `now`, `3 min. ago`, `2 days ago`. */
export function formatRelative(unixSeconds: number, nowSeconds: number, locale: string): string {
  const age = Math.max(0, nowSeconds - unixSeconds)
  const relative = new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: 'short' })
  if (age < MINUTE_S) return relative.format(0, 'second')
  if (age < HOUR_S) return relative.format(-Math.floor(age / MINUTE_S), 'minute')
  if (age < DAY_S) return relative.format(-Math.floor(age / HOUR_S), 'hour')
  return relative.format(-Math.floor(age / DAY_S), 'day')
}

/** A duration: `380 ms`, `4.2 s`, `2 min 5 s`. */
export function formatDuration(milliseconds: number, locale: string): string {
  if (milliseconds < 1000) return `${new Intl.NumberFormat(locale).format(Math.round(milliseconds))} ms`
  const tenths = Math.round(milliseconds / 100)
  if (tenths < 600)
    return `${new Intl.NumberFormat(locale, { minimumFractionDigits: 1 }).format(tenths / 10)} s`
  const seconds = Math.round(milliseconds / 1000)
  return `${new Intl.NumberFormat(locale).format(Math.floor(seconds / 60))} min ${seconds % 60} s`
}

/** The seconds of a half hour, for each of which the gateway stores sums. */
export const HALF_HOUR_S = 1800

/** The end, in Unix seconds, of the half hour that contains this time. */
export function endOfHalfHour(unixSeconds: number): number {
  return (Math.floor(unixSeconds / HALF_HOUR_S) + 1) * HALF_HOUR_S
}

/** The start, in Unix seconds, of the day that contains this time in a time zone. */
export function startOfDay(unixSeconds: number, timeZone: string): number {
  const { year, month, day } = partsOf(unixSeconds, timeZone)
  return midnight(year, month, day, timeZone)
}

/** The start, in Unix seconds, of the week that contains this time. Its first day is that of the language, else Monday. */
export function startOfWeek(unixSeconds: number, locale: string, timeZone: string): number {
  const { year, month, day } = partsOf(unixSeconds, timeZone)
  const weekday = new Date(Date.UTC(year, month - 1, day)).getUTCDay()
  const past = (weekday - firstWeekday(locale) + 7) % 7
  return midnight(year, month, day - past, timeZone)
}

/**
 * The first day of a week, from 0 (Sunday) to 6. Browsers have it as a method, as a member, or not at all. English is
 * British here, as in `formatDate`.
 */
function firstWeekday(locale: string): number {
  const of = new Intl.Locale(locale === 'en' ? 'en-GB' : locale) as {
    getWeekInfo?(): WeekInfo
    readonly weekInfo?: WeekInfo
  }
  return ((of.getWeekInfo?.() ?? of.weekInfo)?.firstDay ?? 1) % 7
}

interface WeekInfo {
  readonly firstDay: number
}

/** The start, in Unix seconds, of the month that contains this time in a time zone. */
export function startOfMonth(unixSeconds: number, timeZone: string): number {
  const { year, month } = partsOf(unixSeconds, timeZone)
  return midnight(year, month, 1, timeZone)
}

/** The day of a time in a time zone, in the format of the page's URL: `2026-11-01`. */
export function isoDay(unixSeconds: number, timeZone: string): string {
  const { year, month, day } = partsOf(unixSeconds, timeZone)
  return new Date(Date.UTC(year, month - 1, day)).toISOString().slice(0, 10)
}

/** The hour of a time in a time zone, in the format of the page's URL: `2026-11-01T14`. */
export function isoHour(unixSeconds: number, timeZone: string): string {
  const { hour } = partsOf(unixSeconds, timeZone)
  return `${isoDay(unixSeconds, timeZone)}T${String(hour).padStart(2, '0')}`
}

const DAY_OR_HOUR = /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}))?$/

/**
 * The start and the end (exclusive), in Unix seconds, of a day or an hour in the format of the page's URL;
 * undefined for any other text.
 */
export function parseDayOrHour(
  text: string | undefined,
  timeZone: string,
): { readonly from: number; readonly to: number } | undefined {
  const found = DAY_OR_HOUR.exec(text ?? '')
  if (!found || Number.isNaN(Date.parse(`${found[1]}-${found[2]}-${found[3]}`))) return undefined
  const [year = 0, month = 0, day = 0, hour] = found
    .slice(1)
    .map((part) => (part === undefined ? undefined : Number(part)))
  if (hour !== undefined) {
    const asUtc = Date.UTC(year, month - 1, day, hour) / 1000
    const from = asUtc - offsetAt(asUtc - offsetAt(asUtc, timeZone), timeZone)
    return { from, to: from + HOUR_S }
  }
  const from = midnight(year, month, day, timeZone)
  // 1.5 days after the start is about noon of the next day, even if the clock was changed in between.
  return { from, to: startOfDay(from + 1.5 * DAY_S, timeZone) }
}

/** The first second of a calendar day, even if the clock is put forward at midnight. */
function midnight(year: number, month: number, day: number, timeZone: string): number {
  const asUtc = Date.UTC(year, month - 1, day) / 1000
  // The first offset is that of midnight in UTC. The clock may be changed between that time and the result,
  // so the offset is determined again at the result.
  let at = asUtc - offsetAt(asUtc, timeZone)
  at = asUtc - offsetAt(at, timeZone)
  return partsOf(at, timeZone).day === new Date(asUtc * 1000).getUTCDate() ? at : at + HOUR_S
}

function offsetAt(unixSeconds: number, timeZone: string): number {
  const { year, month, day, hour, minute, second } = partsOf(unixSeconds, timeZone)
  return Date.UTC(year, month - 1, day, hour, minute, second) / 1000 - unixSeconds
}

function partsOf(unixSeconds: number, timeZone: string) {
  const parts = new Intl.DateTimeFormat('en', {
    timeZone,
    calendar: 'iso8601',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  }).formatToParts(unixSeconds * 1000)
  const part = (wanted: Intl.DateTimeFormatPartTypes): number =>
    Number(parts.find(({ type }) => type === wanted)?.value)
  return {
    year: part('year'),
    month: part('month'),
    day: part('day'),
    hour: part('hour'),
    minute: part('minute'),
    second: part('second'),
  }
}
