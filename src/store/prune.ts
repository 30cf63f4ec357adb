import { setTimeout as delay } from 'node:timers/promises'
import { removeParts } from './kept-contents.ts'
import type { Rows } from './store.ts'

/** Age at which parts without a response are removed; before that, the row may still be written. */
const ORPHAN_AFTER_MS = 3_600_000
/** Number of rows that one write removes, and the pause before the next, so that calls are not delayed. */
const BATCH = 100
const PAUSE_MS = 50

/**
 * Removes rows of one kind that have expired, until there are none or the signal aborts. Resolves to their
 * number.
 */
export async function pruneExpired(
  rows: Pick<Rows, 'write'>,
  kind:
    | 'pruneResponses'
    | 'pruneSignatures'
    | 'pruneSlots'
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
    await delay(PAUSE_MS, undefined, { ref: false, ...(signal && { signal }) }).catch(() => {})
  }
}

/**
 * Removes parts of contents that belong to no response, or to none any more, until there are none or the
 * signal aborts. Resolves to their number.
 */
export async function pruneParts(
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
