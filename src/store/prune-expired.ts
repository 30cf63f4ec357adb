import { setTimeout as delay } from 'node:timers/promises'
import type { Rows } from './store.ts'

/** Rows that one write removes, and the pause before the next: calls are not delayed. */
const BATCH = 100
const PAUSE_MS = 50

/**
 * Removes rows of one kind that have expired, until there are none or the signal aborts. Resolves to their
 * number.
 */
export async function pruneExpired(
  rows: Pick<Rows, 'write'>,
  kind: 'pruneResponses' | 'pruneSignatures',
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
