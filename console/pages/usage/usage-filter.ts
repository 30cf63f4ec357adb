import type { CacheBreak } from '../../../src/domain/cache-break.ts'
import type { CallScope } from '../../api/calls.ts'
import type { SuggestedField } from '../../api/log-field-values.ts'
import type { UsageQuery } from '../../api/usage.ts'
import { periodFromUrl, timeRangeOf, USAGE_PERIODS } from '../../components/period.ts'
import type { SearchState } from '../../components/search-state.ts'
import { keyFilters, keyIdAsUrlValue, valueToUrlText, valuesOfUrlText } from '../../components/url-values.ts'
import { endOfHalfHour, HALF_HOUR_S, isoDay, isoHour, startOfMonth } from '../../components/time.ts'

/** The period to use if the page's URL has none. */
export const DEFAULT_PERIOD = '30d'

/** The dimensions by which sums can be grouped, by their names in the page's URL. */
export const GROUPINGS = ['model', 'key', 'user', 'channel', 'group', 'tier', 'region'] as const

export type Grouping = (typeof GROUPINGS)[number]

/** Dimensions that are only available to administrators. */
export const ADMIN_DIMENSIONS: ReadonlySet<string> = new Set(['user', 'channel'])

/** The dimensions by their names in the gateway's API. */
export const API_DIMENSION_OF_GROUPING = {
  model: 'model',
  key: 'token',
  user: 'user',
  channel: 'channel',
  group: 'group',
  tier: 'service_tier',
  region: 'region',
} as const satisfies Readonly<Record<Grouping, SuggestedField>>
const DAY_S = 86_400
/** The number of series that the gateway returns for each figure; the charts show fewer. */
const TOP = 20
/**
 * The figures by which series are ranked; each chart shows the series with the highest values of its figure.
 */
const RANKS = 'quota,requests,failed'
/** More seconds than any month has, so that the start of a month plus this is within the next month. */
const A_MONTH_S = 32 * DAY_S
/** A period of more than this number of days is divided into months. */
const MANY_DAYS = 200

/** The grouping in the page's URL, if this scope (own calls or the calls of all users) has it. */
export function groupingOf({ by }: SearchState, scope: CallScope): Grouping {
  return groupingsForScope(scope).find((one) => one === by) ?? 'model'
}

/** The ways to group failed calls. `refusals` stands for calls that were refused before they began. */
export const ERROR_GROUPINGS = ['model', 'key', 'user', 'channel', 'cause', 'refusals'] as const

export type ErrorGrouping = (typeof ERROR_GROUPINGS)[number]

/** The ways to group failed calls in this scope (own calls or the calls of all users). */
export function errorGroupings(scope: CallScope): readonly ErrorGrouping[] {
  return ERROR_GROUPINGS.filter((one) => scope === 'all' || !ADMIN_DIMENSIONS.has(one))
}

/**
 * The grouping of failed calls in the page's URL; undefined if it has none, so that the page's own grouping
 * applies.
 */
export function errorGroupingOf({ errors }: SearchState, scope: CallScope): ErrorGrouping | undefined {
  return errorGroupings(scope).find((one) => one === errors)
}

/** The ways to group sums in this scope (own calls or the calls of all users). */
export function groupingsForScope(scope: CallScope): readonly Grouping[] {
  return GROUPINGS.filter((one) => scope === 'all' || !ADMIN_DIMENSIONS.has(one))
}

/**
 * The query for the filters in the page's URL. The period ends with the current half hour, so that rendering the
 * page again does not change the request until then.
 */
export function usageQueryOf(
  search: SearchState,
  scope: CallScope,
  nowMs: number,
  timeZone: string,
  locale: string,
): UsageQuery {
  const now = Math.floor(nowMs / 1000)
  const { from = 0, to = endOfHalfHour(now) } = timeRangeOf(
    periodFromUrl(USAGE_PERIODS, search, DEFAULT_PERIOD),
    search,
    now,
    timeZone,
    locale,
  )
  // The gateway stores sums for each half hour, so the period starts at one.
  const span = { from: Math.floor(from / HALF_HOUR_S) * HALF_HOUR_S, to }
  return {
    ...span,
    tz: timeZone,
    step: stepOf(span),
    by: API_DIMENSION_OF_GROUPING[groupingOf(search, scope)],
    top: TOP,
    rank: RANKS,
    model_name: valuesOfUrlText(search['model']),
    ...keyFilters(search['key']),
    ...(scope === 'all' && {
      username: valuesOfUrlText(search['user']),
      channel: valuesOfUrlText(search['channel']),
    }),
    group: valuesOfUrlText(search['group']),
    service_tier: valuesOfUrlText(search['tier']),
    region: valuesOfUrlText(search['region']),
  }
}

/** The value of the parameter in the page's URL that filters by this series. */
function filterValueOfSeries(grouping: Grouping, { key, label }: { key: string; label: string }): string {
  if (grouping === 'key') return keyIdAsUrlValue(key)
  return valueToUrlText(grouping === 'user' || grouping === 'channel' ? label : key)
}

/**
 * The URL parameters of the page for one series alone. Where the page was grouped by that dimension it would show one
 * row, so it is then grouped by the first dimension that has no filter.
 */
export function searchOfSeries(
  search: SearchState,
  scope: CallScope,
  by: Grouping,
  series: { key: string; label: string },
): SearchState {
  const next = groupingsForScope(scope).find((one) => one !== by && (search[one] ?? '') === '')
  return {
    [by]: filterValueOfSeries(by, series),
    ...(by === groupingOf(search, scope) && next !== undefined && { by: next }),
    ...(by === search['errors'] && { errors: undefined }),
  }
}

function stepOf({ from, to }: { from: number; to: number }): UsageQuery['step'] {
  // A day on which the clock is put back has 25 hours.
  if (to - from <= 25 * 3600) return 'hour'
  return to - from > MANY_DAYS * DAY_S ? 'month' : 'day'
}

/**
 * The filters of the page Logs that select the calls of one interval of a chart; `at` is its start in Unix
 * seconds.
 */
export function logSearchOfInterval(
  search: SearchState,
  at: number,
  { step, tz }: Pick<UsageQuery, 'step' | 'tz'>,
): SearchState {
  const filters = Object.fromEntries(GROUPINGS.map((name) => [name, search[name]]))
  if (step === 'hour') {
    const hour = isoHour(at, tz)
    return { period: 'custom', from: hour, to: hour, ...filters }
  }
  const last = step === 'day' ? at : startOfMonth(at + A_MONTH_S, tz) - 1
  return { period: 'custom', from: isoDay(at, tz), to: isoDay(last, tz), ...filters }
}

/**
 * The filters of the page Logs that select the calls of the period whose prompt cache was not used for this
 * reason.
 */
export function logSearchOfCacheBreak(search: SearchState, reason: CacheBreak): SearchState {
  const filters = Object.fromEntries(GROUPINGS.map((name) => [name, search[name]]))
  return { ...periodSearch(search), ...filters, break: reason }
}

/**
 * The URL parameters of the period, also for the default period, because other pages have another default.
 */
export function periodSearch(search: SearchState): SearchState {
  const period = periodFromUrl(USAGE_PERIODS, search, DEFAULT_PERIOD)
  return period === 'custom' ? { period, from: search['from'], to: search['to'] } : { period }
}
