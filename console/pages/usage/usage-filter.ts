import type { Scope } from '../../api/calls.ts'
import type { UsageQuery } from '../../api/usage.ts'
import type { SearchState } from '../../components/search-state.ts'
import { startOfDay, startOfMonth } from '../../components/time.ts'

/** The periods of sums. */
export const PERIODS = ['today', '7d', '30d', '90d', 'month', 'custom'] as const

/** A period of sums. */
export type Period = (typeof PERIODS)[number]

/** The dimensions that sums can be grouped by, as in the address. */
export const GROUPINGS = ['model', 'key', 'user', 'channel', 'group'] as const

/** A dimension that sums are grouped by. */
export type Grouping = (typeof GROUPINGS)[number]

/** The groupings and filters that only administrators have. */
export const ADMIN_DIMENSIONS: ReadonlySet<string> = new Set(['user', 'channel'])

/** The filters by their name in the address. */
export const FILTERS: Readonly<Record<Grouping, keyof UsageQuery>> = {
  model: 'model_name',
  key: 'token_name',
  user: 'username',
  channel: 'channel',
  group: 'group',
}

const BY: Readonly<Record<Grouping, string>> = {
  model: 'model',
  key: 'token',
  user: 'user',
  channel: 'channel',
  group: 'group',
}
const DAYS = { '7d': 6, '30d': 29, '90d': 89 } as const
const DAY_S = 86_400
/** The number of series that the gateway returns; the charts show fewer. */
const TOP = 20
/** The number of days from which a period is shown by month. */
const MANY_DAYS = 200

/** The period in the address. */
export function periodOf({ period }: SearchState): Period {
  return PERIODS.find((one) => one === period) ?? '30d'
}

/** The grouping in the address, for that scope. */
export function groupingOf({ by }: SearchState, scope: Scope): Grouping {
  return groupings(scope).find((one) => one === by) ?? 'model'
}

/** Groupings available in this scope. */
export function groupings(scope: Scope): readonly Grouping[] {
  return GROUPINGS.filter((one) => scope === 'all' || !ADMIN_DIMENSIONS.has(one))
}

/** The query for an address. The period ends with the present minute, so that a page makes one request. */
export function usageQueryOf(search: SearchState, scope: Scope, nowMs: number, timeZone: string): UsageQuery {
  const now = Math.floor(nowMs / 60_000) * 60 + 60
  const span = spanOf(search, now, timeZone)
  const filters = groupings(scope).map((name) => [FILTERS[name], search[name] || undefined])
  return {
    ...span,
    tz: timeZone,
    step: stepOf(periodOf(search), span),
    by: BY[groupingOf(search, scope)],
    top: TOP,
    ...Object.fromEntries(filters),
  }
}

function spanOf(search: SearchState, now: number, timeZone: string): { from: number; to: number } {
  const period = periodOf(search)
  if (period === 'today') return { from: startOfDay(now, timeZone), to: now }
  if (period === 'month') return { from: startOfMonth(now, timeZone), to: now }
  if (period !== 'custom') return { from: startOfDay(now - DAYS[period] * DAY_S, timeZone), to: now }
  const from = dayOf(search['from'], timeZone) ?? startOfDay(now - DAYS['30d'] * DAY_S, timeZone)
  const last = dayOf(search['to'], timeZone)
  // Noon of the next day is within it, even if the clock is changed.
  const end = last === undefined ? now : Math.min(now, startOfDay(last + 1.5 * DAY_S, timeZone))
  return { from, to: Math.max(end, from + DAY_S) }
}

function stepOf(period: Period, { from, to }: { from: number; to: number }): UsageQuery['step'] {
  if (period === 'today' || to - from <= DAY_S) return 'hour'
  return to - from > MANY_DAYS * DAY_S ? 'month' : 'day'
}

/** The start of a day such as `2026-11-22`. */
function dayOf(text: string | undefined, timeZone: string): number | undefined {
  if (text === undefined || !/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined
  const noon = Date.parse(`${text}T12:00:00Z`) / 1000
  return Number.isNaN(noon) ? undefined : startOfDay(noon, timeZone)
}
