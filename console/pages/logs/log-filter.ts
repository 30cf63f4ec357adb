import type { CallFilter, Scope } from '../../api/calls.ts'
import type { SearchState } from '../../parts/search-state.ts'
import { startOfDay } from '../../parts/time.ts'

/** The periods that calls are shown of. */
export const PERIODS = ['hour', 'today', '7d', '30d', 'all'] as const

/** A period of calls. */
export type Period = (typeof PERIODS)[number]

/** The filters that are typed, by their name in the address. */
export const TYPED_FILTERS = ['model', 'key', 'user', 'channel', 'id'] as const

const DEFAULT_PERIOD: Period = '7d'
const HOUR_S = 3600
const DAYS = { today: 0, '7d': 6, '30d': 29 } as const

/** The period in the address. */
export function periodOf({ period }: SearchState): Period {
  return PERIODS.find((one) => one === period) ?? DEFAULT_PERIOD
}

/** Whether anything narrows the list beside its period. */
export function isFiltered(search: SearchState): boolean {
  return TYPED_FILTERS.some((name) => (search[name] ?? '') !== '')
}

/** The filter of the address. Periods begin at a full minute, so that a page asks once for each. */
export function filterOf(search: SearchState, scope: Scope, nowMs: number, timeZone: string): CallFilter {
  const isAll = scope === 'all'
  return {
    start_timestamp: startOf(periodOf(search), Math.floor(nowMs / 60_000) * 60, timeZone),
    model_name: search['model'],
    token_name: search['key'],
    username: isAll ? search['user'] : undefined,
    channel: isAll ? search['channel'] : undefined,
    request_id: search['id'],
  }
}

function startOf(period: Period, now: number, timeZone: string): number | undefined {
  if (period === 'all') return undefined
  if (period === 'hour') return now - HOUR_S
  return startOfDay(now - DAYS[period] * 86_400, timeZone)
}
