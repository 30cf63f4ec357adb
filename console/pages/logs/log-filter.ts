import { CACHE_BREAKS } from '../../../src/domain/cache-break.ts'
import { FAILURE_CAUSES } from '../../../src/domain/failure-cause.ts'
import type { CallFilter, RefusedCallFilter, CallScope } from '../../api/calls.ts'
import type { RefusalCountQuery } from '../../api/usage.ts'
import type { SuggestedField } from '../../api/log-field-values.ts'
import {
  LOG_PERIODS,
  type Period,
  periodFromUrl,
  type TimeRange,
  timeRangeOf,
} from '../../components/period.ts'
import type { SearchState } from '../../components/search-state.ts'
import { endOfHalfHour, HALF_HOUR_S } from '../../components/time.ts'
import { keyFilters, valuesOfUrlText } from '../../components/url-values.ts'

const CAUSES: ReadonlySet<string> = new Set(FAILURE_CAUSES)
const BREAKS: ReadonlySet<string> = new Set(CACHE_BREAKS)

/**
 * The filters for which the gateway suggests values: `name` is the name in the page's URL, `field` the name
 * in the gateway's API.
 */
export const SUGGESTED_VALUE_FILTERS = [
  { name: 'model', field: 'model' },
  { name: 'key', field: 'token' },
  { name: 'user', field: 'user' },
  { name: 'channel', field: 'channel' },
  { name: 'cause', field: 'cause' },
  { name: 'code', field: 'code' },
  { name: 'group', field: 'group' },
  { name: 'tier', field: 'service_tier' },
  { name: 'region', field: 'region' },
] as const satisfies readonly { readonly name: string; readonly field: SuggestedField }[]

/** The period to use if the page's URL has none. */
export const DEFAULT_PERIOD: Period = '7d'

/**
 * The ways in which a call may have ended: the name in the page's URL, and the reasons that the gateway
 * filters by.
 */
export const STATUSES = {
  complete: 'complete',
  estimated: 'estimated',
  cut: 'cut',
  client_gone: 'client_gone',
  failed: 'failed',
  stopped: 'stopped',
  crash: 'crash,lost-node',
} as const

/** The status of calls that were refused before they began. They are shown in a separate list. */
export const REFUSED_STATUS = 'refused'

/** The name of a status: a way in which a call ended, or `refused`. */
export type CallEndStatus = keyof typeof STATUSES | typeof REFUSED_STATUS

/** The names of all ways in which a call may have ended. */
export const STATUS_NAMES = [...Object.keys(STATUSES), REFUSED_STATUS] as readonly CallEndStatus[]

/** The status in the page's URL; undefined for calls of any status. */
export function statusFromUrl({ status }: SearchState): CallEndStatus | undefined {
  return STATUS_NAMES.find((one) => one === status)
}

/** Filters that apply only to refused calls. */
const OF_REFUSED: ReadonlySet<string> = new Set(['code'])
const NOT_OF_REFUSED: ReadonlySet<string> = new Set([
  'channel',
  'cause',
  'tier',
  'region',
  'session',
  'batch',
  'break',
])

/** Whether the filter with this name applies to calls of this status. */
export function isFilterApplicable(status: CallEndStatus | undefined, name: string): boolean {
  return status === REFUSED_STATUS ? !NOT_OF_REFUSED.has(name) : !OF_REFUSED.has(name)
}

const CALL_ID = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}(?:\.\d+){0,3}/i

/** Whether the list has refused calls, too: those of any status, unless a filter is set that they cannot match. */
export function areRefusedIncluded(search: SearchState): boolean {
  return (
    statusFromUrl(search) === undefined && [...NOT_OF_REFUSED].every((name) => (search[name] ?? '') === '')
  )
}

/** The id of a call that a text contains, such as an error message; the text itself if it contains none. */
export function findCallId(text: string | undefined): string | undefined {
  return CALL_ID.exec(text ?? '')?.[0].toLowerCase() ?? text
}

const FILTER_NAMES = [...SUGGESTED_VALUE_FILTERS.map(({ name }) => name), 'id', 'session', 'batch', 'break']

/** Changes of the page's URL that remove all filters except the period. */
export const FILTERS_REMOVED: SearchState = Object.fromEntries(
  [...FILTER_NAMES, 'status'].map((name) => [name, undefined]),
)

/** Whether the list of calls is filtered by more than its period. */
export function isLogFiltered(search: SearchState): boolean {
  return countFilters(search) > 0
}

/** The number of filters that are set, without the period. */
export function countFilters(search: SearchState): number {
  const isStatus = statusFromUrl(search) !== undefined
  return FILTER_NAMES.filter((name) => (search[name] ?? '') !== '').length + Number(isStatus)
}

/**
 * The period in the page's URL. It is cut to full minutes, so that rendering the page again does not change
 * the request.
 */
export function logTimeRange(
  search: SearchState,
  nowMs: number,
  timeZone: string,
  locale: string,
): TimeRange {
  const now = Math.floor(nowMs / 60_000) * 60
  return timeRangeOf(periodFromUrl(LOG_PERIODS, search, DEFAULT_PERIOD), search, now, timeZone, locale)
}

/** The filter in the page's URL, for settled calls. */
export function callFilterOf(search: SearchState, scope: CallScope, { from, to }: TimeRange): CallFilter {
  const isAll = scope === 'all'
  const status = statusFromUrl(search)
  return {
    start_timestamp: from,
    end_timestamp: to === undefined ? undefined : to - 1,
    model_name: valuesOfUrlText(search['model']),
    ...keyFilters(search['key']),
    username: isAll ? valuesOfUrlText(search['user']) : [],
    channel: isAll ? valuesOfUrlText(search['channel']) : [],
    group: valuesOfUrlText(search['group']),
    service_tier: valuesOfUrlText(search['tier']),
    region: valuesOfUrlText(search['region']),
    request_id: findCallId(search['id']),
    reason: status === undefined || status === REFUSED_STATUS ? undefined : STATUSES[status],
    cause: valuesOfUrlText(search['cause']).filter((cause) => CAUSES.has(cause)),
    session: valuesOfUrlText(search['session']),
    batch: valuesOfUrlText(search['batch']),
    cache_break: valuesOfUrlText(search['break']).filter((reason) => BREAKS.has(reason)),
  }
}

const COUNTED_FILTERS: ReadonlySet<string> = new Set(['key', 'user', 'code'])

/**
 * The query for how many calls were refused, which is more than the list keeps. Undefined where the counters do not tell: they
 * have half hours, keys, users and codes alone.
 */
export function refusalCountQueryOf(
  search: SearchState,
  scope: CallScope,
  { from, to }: TimeRange,
  nowMs: number,
): RefusalCountQuery | undefined {
  const isCounted = FILTER_NAMES.every((name) => COUNTED_FILTERS.has(name) || (search[name] ?? '') === '')
  const isWhole = [from, to ?? 0].every((at) => at !== undefined && at % HALF_HOUR_S === 0)
  if (from === undefined || !isCounted || !isWhole) return undefined
  return {
    from,
    to: to ?? endOfHalfHour(nowMs / 1000),
    code: valuesOfUrlText(search['code']),
    ...keyFilters(search['key']),
    ...(scope === 'all' && { username: valuesOfUrlText(search['user']) }),
  }
}

/** The filter in the page's URL, for refused calls. */
export function refusedCallFilterOf(
  search: SearchState,
  scope: CallScope,
  span: TimeRange,
): RefusedCallFilter {
  const wanted = callFilterOf(search, scope, span)
  return {
    ...wanted,
    channel: undefined,
    reason: undefined,
    cause: undefined,
    service_tier: undefined,
    region: undefined,
    session: undefined,
    batch: undefined,
    cache_break: undefined,
    code: valuesOfUrlText(search['code']),
  }
}
