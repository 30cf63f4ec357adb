import { OBJECT_KINDS } from '../../../src/domain/audit.ts'
import type { AuditFilter } from '../../api/audit.ts'
import type { SearchState } from '../../components/search-state.ts'
import { startOfDay } from '../../components/time.ts'

export const AUDIT_PERIODS = ['today', '7d', '30d', 'all'] as const

const DAYS = { today: 0, '7d': 6, '30d': 29 } as const
const DAY_S = 86_400

/** The period in the page's URL. */
export function auditPeriodOf({ period }: SearchState): (typeof AUDIT_PERIODS)[number] {
  return AUDIT_PERIODS.find((one) => one === period) ?? '30d'
}

/** Whether the audit log is filtered by more than its period. */
export function isAuditFiltered({ actor, kind, object }: SearchState): boolean {
  return [actor, kind, object].some((text) => (text ?? '') !== '')
}

/** The filter in the page's URL. */
export function auditFilterOf(search: SearchState, nowMs: number, timeZone: string): AuditFilter {
  const period = auditPeriodOf(search)
  const today = startOfDay(nowMs / 1000, timeZone)
  return {
    // Counts back from noon: even if the clock was changed in between, the result is within the right day.
    from: period === 'all' ? undefined : startOfDay(today + DAY_S / 2 - DAYS[period] * DAY_S, timeZone),
    kind: OBJECT_KINDS.find((kind) => kind === search['kind']),
    actor: search['actor'] || undefined,
    object: search['object'] || undefined,
  }
}
