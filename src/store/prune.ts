import { setTimeout as delay } from 'node:timers/promises'
import type { RowStore, Store } from './store.ts'

/** Maximum number of rows that one write removes. */
const BATCH = 100
/** Milliseconds between two writes, so that calls are not delayed. */
const PAUSE_MS = 50

/** Operations that remove expired rows. */
export type ExpiredRows =
  | 'pruneResponses'
  | 'pruneKept'
  | 'pruneAnswerRemovals'
  | 'pruneIdempotentCalls'
  | 'pruneHalfHourSums'
  | 'pruneRefusedCalls'
  | 'pruneBudgets'
  | 'pruneLentBudgets'
  | 'pruneAuditLog'

/**
 * Removes expired rows of one kind until there are no more or the signal aborts. Resolves to the number of
 * removed rows.
 */
export async function pruneExpired(
  rows: Pick<RowStore, 'write'>,
  kind: ExpiredRows,
  nowMs: number,
  signal?: AbortSignal,
): Promise<number> {
  for (let removed = 0; ; ) {
    const count = await rows.write(kind, { nowMs, limit: BATCH })
    removed += count
    if (count === 0 || signal?.aborted) return removed
    await pause(signal)
  }
}

const DAY_MS = 86_400_000

/**
 * Target duration of a batch in milliseconds. The time of its commit is not included, because it hardly
 * depends on the number of rows.
 */
const TARGET_BATCH_MS = 1
const FIRST_BATCH = 100
const MIN_BATCH = 20
const MAX_BATCH = 1_000

/**
 * Removes the usage rows of calls that ended more than `days` days before `nowMs`. Works in batches of a few
 * milliseconds, until there are no more rows or the signal aborts. Resolves to the number of removed rows.
 * Rejects with `StoreUnavailable` if the store fails; the next run then continues.
 */
export async function pruneUsage(
  store: Pick<Store, 'write'>,
  days: number,
  nowMs: number,
  signal?: AbortSignal,
): Promise<number> {
  const beforeMs = nowMs - days * DAY_MS
  let limit = FIRST_BATCH
  let removed = 0
  for (;;) {
    const { rows, tookMs } = await store.write('prune', { beforeMs, limit })
    removed += rows
    if (rows === 0) return removed
    limit = nextLimit(limit, tookMs)
    await pause(signal)
    if (signal?.aborted) return removed
  }
}

/**
 * Returns the size of the next batch, so that it takes about the target duration; at most twice the present
 * size.
 */
function nextLimit(limit: number, tookMs: number): number {
  const fitting = Math.floor((limit * TARGET_BATCH_MS) / Math.max(tookMs, 0.01))
  return Math.max(MIN_BATCH, Math.min(MAX_BATCH, 2 * limit, fitting))
}

function pause(signal: AbortSignal | undefined): Promise<void> {
  return delay(PAUSE_MS, undefined, { ref: false, ...(signal && { signal }) }).catch(() => {})
}
