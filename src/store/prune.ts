import { setTimeout as delay } from 'node:timers/promises'
import { removeParts } from './large-contents.ts'
import type { Rows, Store } from './store.ts'

/** Age at which parts without a response are removed; before that, the row may still be written. */
const ORPHAN_AFTER_MS = 3_600_000
/** Number of rows that one write removes. */
const BATCH = 100
/** Pause before the next write, so that calls are not delayed. */
const PAUSE_MS = 50

/**
 * Removes rows of one kind that have expired, until there are none or the signal aborts. Resolves to their
 * number.
 */
export async function pruneExpired(
  rows: Pick<Rows, 'write'>,
  kind:
    | 'pruneResponses'
    | 'pruneAnswers'
    | 'pruneAnswerRemovals'
    | 'pruneIdempotentCalls'
    | 'pruneAnswerParts'
    | 'pruneSignatures'
    | 'pruneSlots'
    | 'pruneRefusedCalls'
    | 'pruneBudgets'
    | 'pruneLentBudgets'
    | 'pruneAuditLog',
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

/**
 * Removes parts of contents that belong to no response, or to none any more, until there are none or the
 * signal aborts. Resolves to their number.
 */
export async function pruneOrphanedParts(
  rows: Pick<Rows, 'read' | 'write'>,
  nowMs: number,
  signal?: AbortSignal,
): Promise<number> {
  for (let removed = 0; ; ) {
    const ids = await rows.read('orphanedContents', {
      createdBeforeMs: nowMs - ORPHAN_AFTER_MS,
      limit: BATCH,
    })
    for (const id of ids) {
      removed += await removeParts(rows, id)
      if (signal?.aborted) return removed
    }
    if (ids.length < BATCH) return removed
  }
}

const DAY_MS = 86_400_000

/** Target time of a batch before its commit; the commit of so few pages is as short as any other. */
const TARGET_BATCH_MS = 1
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
    await pause(signal)
    if (signal?.aborted) return removed
  }
}

/** Scales the batch to the target time, at most doubling it. */
function nextLimit(limit: number, tookMs: number): number {
  const fitting = Math.floor((limit * TARGET_BATCH_MS) / Math.max(tookMs, 0.01))
  return Math.max(MIN_BATCH, Math.min(MAX_BATCH, 2 * limit, fitting))
}

function pause(signal: AbortSignal | undefined): Promise<void> {
  return delay(PAUSE_MS, undefined, { ref: false, ...(signal && { signal }) }).catch(() => {})
}
