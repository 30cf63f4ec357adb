import { FAILED_REASONS } from '../../domain/call-outcome.ts'
import { FAILURE_CAUSES } from '../../domain/failure-cause.ts'
import { emptyHistogram, serializeHistogram } from '../../domain/latency.ts'
import type { SeriesPlan } from '../../domain/series-plan.ts'
import { type UsageFilter, filterValueList } from '../../domain/usage-filter.ts'
import { addCallToHistograms, SLOT_MS, SLOTS_PER_DAY } from '../sum-kinds.ts'
import type { Db } from './operation.ts'
import {
  resolveFilterNames,
  resolveScanBounds,
  selectMatchingCalls,
  type UsageCursor,
  type UsageScan,
} from './usage-log.ts'

/** What the sums of one user or key do not have, counted from rows of the usage log in one step of time. */
export interface CallFacts {
  /** Number of calls whose client got a part of the response, and of failed calls. */
  readonly answered: number
  readonly failed: number
  /** Number of failed calls by cause, in the order of `FAILURE_CAUSES`. */
  readonly causes: readonly number[]
  /** Durations of whole calls and times to the first byte, as texts of `serializeHistogram`. */
  readonly latencies: readonly [total: string, first: string]
}

/**
 * Counts the latencies and the causes of failures of the matching calls of one scan, for each step of time as
 * `plan` says. `next` is the cursor for the next scan, or null at the end of the log.
 */
export async function callFacts(
  db: Db,
  given: UsageScan & { readonly plan: SeriesPlan; readonly steps: number },
): Promise<{ readonly steps: readonly CallFacts[]; readonly next: UsageCursor | null }> {
  const { plan, filter, ...others } = given
  const facts = Array.from({ length: given.steps }, () => ({
    answered: 0,
    failed: 0,
    causes: FAILURE_CAUSES.map(() => 0),
    histograms: [emptyHistogram(), emptyHistogram()] as const,
  }))
  const scan = await resolveScanBounds(db, { ...others, filter: { ...filter, ...periodOf(plan) } })
  const rows = scan
    ? await selectMatchingCalls(db, scan)
        .select(['ended_ms', 'reason', 'requests', 'cause', 'duration_ms', 'first_byte_ms'])
        .execute()
    : []
  const stepAt = stepsOf(plan)
  for (const row of rows) {
    const step = facts[stepAt(row.ended_ms)]
    if (!step) continue
    const delivered = row.requests > 0 && row.reason !== 'failed'
    if (delivered) step.answered += 1
    if (FAILED.has(row.reason)) {
      step.failed += 1
      const cause = CAUSES.indexOf(row.cause)
      if (cause !== -1) step.causes[cause]! += 1
    }
    addCallToHistograms(step.histograms, { ...row, delivered })
  }
  return {
    steps: facts.map(({ histograms: [total, first], ...counts }) => ({
      ...counts,
      latencies: [serializeHistogram(total), serializeHistogram(first)],
    })),
    next: scan?.end ?? null,
  }
}

const FAILED: ReadonlySet<string> = new Set(FAILED_REASONS)
const CAUSES: readonly string[] = FAILURE_CAUSES

function periodOf({ firstDay, days, moved }: SeriesPlan): Pick<UsageFilter, 'fromMs' | 'beforeMs'> {
  const slots = moved.map(({ slot }) => slot)
  const first = days.length > 0 ? [firstDay * SLOTS_PER_DAY] : []
  const end = days.length > 0 ? [(firstDay + days.length) * SLOTS_PER_DAY] : []
  const from = Math.min(...first, ...slots.slice(0, 1))
  const before = Math.max(...end, ...slots.slice(-1).map((slot) => slot + 1))
  return Number.isFinite(from) ? { fromMs: from * SLOT_MS, beforeMs: before * SLOT_MS } : { beforeMs: 0 }
}

/** Returns a function for the step to which the sums count a call that ended at a time; -1 for none. */
function stepsOf({ firstDay, days, moved }: SeriesPlan): (endedMs: number) => number {
  const moves = new Map(moved.map(({ slot, to }) => [slot, to]))
  return (endedMs) => {
    const slot = Math.floor(endedMs / SLOT_MS)
    return moves.get(slot) ?? days[Math.floor(slot / SLOTS_PER_DAY) - firstDay] ?? -1
  }
}

/** Reads the ids of the users whose calls can match a filter that names users or keys. */
export async function usersOfFilter(db: Db, given: UsageFilter): Promise<readonly number[]> {
  const filter = await resolveFilterNames(db, given)
  if (!filter) return []
  const { user_id, token_id, token_name } = filter
  const users = user_id === undefined ? undefined : filterValueList(user_id)
  if (token_id === undefined && token_name === undefined) return users ?? []
  let query = db.selectFrom('tokens').select('user_id').distinct()
  if (token_id !== undefined) query = query.where('id', 'in', filterValueList(token_id))
  if (token_name !== undefined) query = query.where('name', 'in', filterValueList(token_name))
  const holders = (await query.execute()).map((row) => row.user_id)
  return users ? users.filter((id) => holders.includes(id)) : holders
}
