import { setTimeout as delay } from 'node:timers/promises'
import type { Store } from './store.ts'

const DAY_MS = 86_400_000

/** Target time of a batch before its commit; the commit of so few pages is as short as any other. */
const TARGET_BATCH_MS = 1
/** Pause between batches, so that calls are not delayed. */
const PAUSE_MS = 50
const FIRST_BATCH = 100
const MIN_BATCH = 20
const MAX_BATCH = 1_000

/**
 * Removes the usage rows of calls that ended more than `days` days before `nowMs`, in batches that occupy the
 * writer for a few milliseconds each, until there are none or the signal aborts. Resolves to the number of
 * rows removed. Rejects with `StoreUnavailable` like the store; the next run removes the others.
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

/** Scales the batch to the target time, at most doubling it. */
function nextLimit(limit: number, tookMs: number): number {
  const fitting = Math.floor((limit * TARGET_BATCH_MS) / Math.max(tookMs, 0.01))
  return Math.max(MIN_BATCH, Math.min(MAX_BATCH, 2 * limit, fitting))
}
