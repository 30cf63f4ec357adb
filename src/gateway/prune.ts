import type { Logger } from 'pino'
import type { Options } from '../domain/options.ts'
import { type ExpiredRows, pruneExpired, pruneUsage } from '../store/prune.ts'
import { pruneKeptOfDeleted } from '../store/kept-of-deleted.ts'
import type { RowStore, Store } from '../store/store.ts'
import { timeOfBatchId } from '../store/usage-id.ts'
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
 * Removes one kind of expired data. Resolves to values for the log, which gets a line unless all of them are 0, false or
 * empty.
 */
export type PrunePart = (days: RetentionDays, signal: AbortSignal) => Promise<object>

type BudgetRows = 'pruneBudgets' | 'pruneLentBudgets'

/** Names in the log for the numbers of removed rows, by operation. Half-hour sums expire by an option instead. */
const REMOVED: Readonly<Record<Exclude<ExpiredRows, BudgetRows | 'pruneHalfHourSums'>, string>> = {
  pruneResponses: 'removedResponses',
  pruneKept: 'removedKept',
  pruneAnswerRemovals: 'removedAnswerRemovals',
  pruneIdempotentCalls: 'removedIdempotentCalls',
  pruneRefusedCalls: 'removedRefusals',
  pruneAuditLog: 'removedAuditEntries',
}

/**
 * Creates the parts for a database. The embedded database and PostgreSQL store the usage log and budgets in different
 * forms.
 */
export function pruneParts(
  store: Pick<RowStore, 'read' | 'write'>,
  usage: PrunePart,
  budgets: BudgetRows,
): readonly PrunePart[] {
  return [
    async (days, signal) =>
      usage({ ...days, log: Math.max(days.log, await daysOfOpenBatches(store)) }, signal),
    async (_, signal) => ({ finishedDeletions: await pruneKeptOfDeleted(store, signal) }),
    async (days, signal) => ({
      removedSlots: await pruneExpired(store, 'pruneHalfHourSums', halfHourSumsRemovedBefore(days), signal),
    }),
    ...Object.entries({ ...REMOVED, [budgets]: 'removedBudgets' }).map(
      ([operation, name]): PrunePart =>
        async (_, signal) => ({
          [name]: await pruneExpired(store, operation as ExpiredRows, Date.now(), signal),
        }),
    ),
  ]
}

/**
 * Number of days whose rows say which lines of open batches are charged; 1 if there is no such batch. One more than the oldest
 * batch is old, because the clock of the database may differ.
 */
async function daysOfOpenBatches(store: Pick<RowStore, 'read'>): Promise<number> {
  const open = await store.read('keysOfKind', { kind: 'batch_open' })
  const ages = open.map(({ key }) => (Date.now() - timeOfBatchId(key)) / (24 * HOUR_MS))
  return 1 + Math.ceil(Math.max(0, ...ages))
}

/** Creates the parts for the embedded database. */
export function embeddedPruneParts(store: Store): readonly PrunePart[] {
  const usage: PrunePart = async (days, signal) => ({
    removed: await pruneUsage(store, days.log, Date.now(), signal),
  })
  return pruneParts(store, usage, 'pruneBudgets')
}

/**
 * Removes expired data a minute after the start, and then every hour. `days` is called at each run. For a day after the
 * clock was set by hours nothing is removed: it may be wrong, and what is gone does not come back when it is set right.
 * A part that fails is tried again in an hour, and keeps no other from its work. `docs/configuration.md: Options`,
 * `usage_log_days` and `slot_days`.
 */
export function pruneRegularly(
  parts: readonly PrunePart[],
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
    const done = {}
    const failures: unknown[] = []
    for (const part of parts)
      try {
        Object.assign(done, await part(days(), stopping.signal))
      } catch (error) {
        if (stopping.signal.aborted) return
        failures.push(error)
      }
    if (Object.values(done).some(isNonEmpty)) log.info(done, 'the usage log was pruned')
    if (failures.length > 0)
      log.warn(
        { err: failures[0], failed: failures.length },
        'some expired data was not removed; tried again in an hour',
      )
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
