import { z } from 'zod'
import { CALENDAR_STEPS, Calendar, type CalendarStep } from '../../domain/calendar.ts'
import type { PlannedPeriod } from '../../domain/series-plan.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import { GatewayError } from '../../errors.ts'
import { SERIES_DIMENSIONS } from '../../store/operations/usage-sums.ts'
import { wantedText, wholeNumber } from '../query-fields.ts'

const HOUR_S = 3_600
/** Default length of the period in days, if it has no start. */
const DEFAULT_DAYS: Readonly<Record<CalendarStep, number>> = { hour: 2, day: 30, month: 365 }
/** Half an hour, the time covered by one row of sums. */
const SLOT_S = 1_800
const DEFAULT_TOP = 6
const MAX_TOP = 20
/** Maximum number of steps of a series. */
const MAX_STEPS = 400
/** Minimum length of each step in seconds; a day with a clock change may be shorter than 24 hours. */
const SHORTEST_S: Readonly<Record<CalendarStep, number>> = {
  hour: HOUR_S,
  day: 22 * HOUR_S,
  month: 27 * 24 * HOUR_S,
}

const TOP_ERROR = `expected a whole number from 0 to ${MAX_TOP}`

/** The period and the steps of a series, and the format of the response; `docs/api.md: Usage series`. */
export const periodQuery = z.object({
  from: wholeNumber(),
  to: wholeNumber(),
  tz: z.string().max(100, { error: 'expected at most 100 characters' }).optional(),
  step: z.enum(CALENDAR_STEPS, { error: `expected one of ${CALENDAR_STEPS.join(', ')}` }).optional(),
  top: wholeNumber().refine((top) => top === undefined || top <= MAX_TOP, { error: TOP_ERROR }),
  format: z.enum(['json', 'csv'], { error: 'expected json or csv' }).optional(),
})

const ownFilters = { model_name: wantedText(), token_name: wantedText(), group: wantedText() }
const allFilters = { ...ownFilters, username: wantedText(), channel: wantedText() }

const oneOf = <const Names extends readonly [string, ...string[]]>(names: Names) =>
  z.enum(names, { error: `expected one of ${names.join(', ')}` }).optional()

/** The query for a series of all users. */
export const seriesQuery = periodQuery.extend({ by: oneOf(SERIES_DIMENSIONS), ...allFilters })

/** The query for a series of a user's own calls, without channels. */
export const ownSeriesQuery = periodQuery.extend({
  by: oneOf(['model', 'token', 'group', 'none']),
  ...ownFilters,
})

/** Converts a query to a filter; with `userId`, for the calls of that user only. */
export function seriesFilterOf(
  query: z.output<typeof seriesQuery> | z.output<typeof ownSeriesQuery>,
  userId?: number,
): UsageFilter {
  const { username, channel } = query as z.output<typeof seriesQuery>
  return {
    user_id: userId,
    username,
    channel,
    token_name: query.token_name,
    model: query.model_name,
    group: query.group,
  }
}

/** Period of a query, in the calendar of its zone. */
export interface SeriesPeriod extends PlannedPeriod {
  readonly tz: string
  readonly calendar: Calendar
  /** Start of the preceding period, which has the same length in local time; Unix seconds. */
  readonly previousS: number
  /** Maximum number of lines. */
  readonly top: number
}

/** The period of a query: the days until now, unless it states another. Throws if the period is invalid. */
export function periodOf(query: z.output<typeof periodQuery>, nowMs: number): SeriesPeriod {
  const { tz = 'UTC', step = 'day', top = DEFAULT_TOP } = query
  const calendar = calendarOf(tz)
  const now = Math.floor(nowMs / 1000) + 1
  const end = query.to ?? now
  // A half hour that has not ended yet is included as far as it has passed.
  const toS = end < now ? end : Math.ceil(end / SLOT_S) * SLOT_S
  const fromS = query.from ?? calendar.startOf('day', (toS - DEFAULT_DAYS[step] * 24 * HOUR_S) * 1000) / 1000
  if (toS <= fromS) throw new GatewayError('invalid_request', 'to: expected a time after "from"')
  if (fromS * 1000 > nowMs)
    throw new GatewayError('invalid_request', 'from: expected a time that is not in the future')
  const tooMany = (): never => {
    throw new GatewayError(
      'invalid_request',
      `step: expected at most ${MAX_STEPS} of them from "from" to "to"`,
    )
  }
  if (Math.floor((toS - fromS) / SHORTEST_S[step]) > MAX_STEPS * 1.1) tooMany()
  const starts: number[] = []
  for (let ms = calendar.startOf(step, fromS * 1000); ms < toS * 1000; ms = calendar.nextStart(step, ms))
    if (starts.push(ms / 1000) > MAX_STEPS) tooMany()
  const previousS = Math.max(0, calendar.previousStart(fromS * 1000, toS * 1000) / 1000)
  return { tz, step, top, calendar, fromS, toS, starts, previousS }
}

function calendarOf(tz: string): Calendar {
  try {
    return new Calendar(tz)
  } catch {
    throw new GatewayError('invalid_request', 'tz: expected the name of a time zone, such as Europe/Berlin')
  }
}
