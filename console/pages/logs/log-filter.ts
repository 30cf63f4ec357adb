import { FAILURE_CAUSES, type FailureCause } from '../../../src/domain/failure-cause.ts'
import type { CallFilter, Scope } from '../../api/calls.ts'
import type { SearchState } from '../../components/search-state.ts'
import { startOfDay } from '../../components/time.ts'

/** The periods for the list of calls. */
export const PERIODS = ['hour', 'today', '7d', '30d', 'all'] as const

/** A period of calls. */
export type Period = (typeof PERIODS)[number]

/** The typed filters, by their name in the address. */
export const TYPED_FILTERS = ['model', 'key', 'user', 'channel', 'id'] as const

/** The ways in which a call may have ended, by their name in the address; each is shown as one word. */
export const STATUSES = {
  complete: 'complete',
  estimated: 'estimated',
  cut: 'cut',
  client_gone: 'client_gone',
  failed: 'failed',
  stopped: 'stopped',
  crash: 'crash,lost-node',
} as const

/** The name of a way in which a call may have ended. */
export type Status = keyof typeof STATUSES

/** The names of all ways in which a call may have ended. */
export const STATUS_NAMES = Object.keys(STATUSES) as readonly Status[]

const DEFAULT_PERIOD: Period = '7d'
const HOUR_S = 3600
const DAYS = { today: 0, '7d': 6, '30d': 29 } as const

/** The period in the address. */
export function periodOf({ period }: SearchState): Period {
  return PERIODS.find((one) => one === period) ?? DEFAULT_PERIOD
}

/** How calls ended, by the address; undefined for all ways. */
export function statusOf({ status }: SearchState): Status | undefined {
  return STATUS_NAMES.find((one) => one === status)
}

/** Why calls failed, by the address; undefined for all calls. */
export function causeOf({ cause }: SearchState): FailureCause | undefined {
  return FAILURE_CAUSES.find((one) => one === cause)
}

const CALL_ID = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/i

/** The id of a call in a text, which may be a whole error message; the text itself if it has none. */
export function idIn(text: string | undefined): string | undefined {
  return CALL_ID.exec(text ?? '')?.[0].toLowerCase() ?? text
}

/** Changes of the address that remove all filters except the period. */
export const NO_FILTERS: SearchState = Object.fromEntries(
  [...TYPED_FILTERS, 'status', 'cause'].map((name) => [name, undefined]),
)

/** Whether the list is filtered by more than its period. */
export function isFiltered(search: SearchState): boolean {
  return (
    statusOf(search) !== undefined ||
    causeOf(search) !== undefined ||
    TYPED_FILTERS.some((name) => (search[name] ?? '') !== '')
  )
}

/** The filter in the address. Periods begin at a full minute, so that a page makes one request for each. */
export function filterOf(search: SearchState, scope: Scope, nowMs: number, timeZone: string): CallFilter {
  const isAll = scope === 'all'
  const status = statusOf(search)
  return {
    start_timestamp: startOf(periodOf(search), Math.floor(nowMs / 60_000) * 60, timeZone),
    model_name: search['model'],
    token_name: search['key'],
    username: isAll ? search['user'] : undefined,
    channel: isAll ? search['channel'] : undefined,
    request_id: idIn(search['id']),
    reason: status && STATUSES[status],
    cause: causeOf(search),
  }
}

function startOf(period: Period, now: number, timeZone: string): number | undefined {
  if (period === 'all') return undefined
  if (period === 'hour') return now - HOUR_S
  return startOfDay(now - DAYS[period] * 86_400, timeZone)
}
