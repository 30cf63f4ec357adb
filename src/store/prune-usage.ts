import { setTimeout as delay } from 'node:timers/promises'
import type { Store } from './store.ts'

const DAY_MS = 86_400_000

/**
 * How long a batch may keep the writer before its commit, which then has so few pages to write that it takes
 * about as long as any.
 */
const TARGET_BATCH_MS = 1
/** Between batches, so that calls are served as if nobody pruned. */
const PAUSE_MS = 50
const FIRST_BATCH = 100
const MIN_BATCH = 20
const MAX_BATCH = 1_000

/**
 * Removes the usage rows of calls that ended more than `days` days before `nowMs`, in batches that hold the
 * writer for a few milliseconds each, until there are none or the signal aborts. Returns how many rows it
 * removed. Rejects with `StoreUnavailable` where the store does; what is left then goes at the next run.
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
    await delay(PAUSE_MS, undefined, { ref: false, ...(signal && { signal }) }).catch(() => {})
    if (signal?.aborted) return removed
  }
}

/** So many rows as would have fitted into the goal, at most twice as many as the last time. */
function nextLimit(limit: number, tookMs: number): number {
  const fitting = Math.floor((limit * TARGET_BATCH_MS) / Math.max(tookMs, 0.01))
  return Math.max(MIN_BATCH, Math.min(MAX_BATCH, 2 * limit, fitting))
}
