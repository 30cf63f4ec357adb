import type { Logger } from 'pino'
import type { Options } from '../domain/options.ts'
import { pruneExpired, pruneUsage } from '../store/prune.ts'
import { pruneKeptOfDeleted } from '../store/kept-store.ts'
import type { Store } from '../store/store.ts'
import { SteadyClock } from './steady-clock.ts'

const FIRST_MS = 60_000
const HOUR_MS = 3_600_000

/** The retention periods that the options state. */
export function retentionDays({ usage_log_days: usageLogDays, slot_days: slotDays }: Options): RetentionDays {
  return { log: usageLogDays, slots: slotDays }
}

/** Unix milliseconds before which half-hour sums are removed. */
export function halfHourSumsRemovedBefore({ slots }: RetentionDays): number {
  return Date.now() - slots * 24 * HOUR_MS
}

/** Numbers of days for which usage is stored: `log` for rows of calls, `slots` for half-hour sums. */
export interface RetentionDays {
  readonly log: number
  readonly slots: number
}

/**
 * Removes expired usage rows and sums, stored responses and other expired data. The result is logged unless
 * all its values are 0 or empty.
 */
export type PruneFunction = (days: RetentionDays, signal: AbortSignal) => Promise<object>

/** Returns the function that removes expired data from the embedded database. */
export function pruneEmbeddedDatabase(store: Store): PruneFunction {
  return async (days, signal) => ({
    removed: await pruneUsage(store, days.log, Date.now(), signal),
    removedResponses: await pruneExpired(store, 'pruneResponses', Date.now(), signal),
    finishedDeletions: await pruneKeptOfDeleted(store, signal),
    removedKept: await pruneExpired(store, 'pruneKept', Date.now(), signal),
    removedAnswerRemovals: await pruneExpired(store, 'pruneAnswerRemovals', Date.now(), signal),
    removedIdempotentCalls: await pruneExpired(store, 'pruneIdempotentCalls', Date.now(), signal),
    removedBudgets: await pruneExpired(store, 'pruneBudgets', Date.now(), signal),
    removedRefusals: await pruneExpired(store, 'pruneRefusedCalls', Date.now(), signal),
    removedSlots: await pruneExpired(store, 'pruneHalfHourSums', halfHourSumsRemovedBefore(days), signal),
    removedAuditEntries: await pruneExpired(store, 'pruneAuditLog', Date.now(), signal),
  })
}

/**
 * Removes expired data a minute after the start, and then every hour. `days` is called at each run. For a day after the
 * clock was set by hours nothing is removed: it may be wrong, and what is gone does not come back when it is set right.
 * `docs/configuration.md: Options`, `usage_log_days` and `slot_days`.
 */
export function pruneRegularly(
  prune: PruneFunction,
  days: () => RetentionDays,
  log: Logger,
): { stop(): void } {
  const stopping = new AbortController()
  const clock = new SteadyClock()
  const removeNow = async (): Promise<void> => {
    if (!clock.isSteady()) {
      log.warn('the clock was set by more than an hour: no expired data is removed until a day has passed')
      return
    }
    try {
      const done = await prune(days(), stopping.signal)
      if (Object.values(done).some(isNonEmpty)) log.info(done, 'the usage log was pruned')
    } catch (error) {
      if (!stopping.signal.aborted)
        log.warn({ err: error }, 'old usage rows were not removed; tried again in an hour')
    }
  }
  const run = async (): Promise<void> => {
    await removeNow()
    timer = setTimeout(() => void run(), HOUR_MS).unref()
  }
  let timer = setTimeout(() => void run(), FIRST_MS).unref()
  return {
    stop() {
      stopping.abort()
      clearTimeout(timer)
    },
  }
}

function isNonEmpty(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value)
}
