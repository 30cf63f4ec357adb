import { setTimeout as delay } from 'node:timers/promises'
import type { LineReserve } from '../../accounts/ledger/batch-hold.ts'
import type { Ledger } from '../../accounts/ledger/ledger.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { outcomeOf } from './batch-results.ts'
import type { BatchRun } from './batch-run.ts'
import type { BatchStore, LineResult, Unanswered } from './batch-store.ts'
import type { LineAnswer } from './line-call.ts'
import { type Batch, callIdOfLine, type LineHead } from './batch.ts'

/** Milliseconds after which a write that has failed is tried again. */
const RETRY_MS = 1_000

export type SettledLine = Pick<LineHead, 'number'>

/** Services that settling lines needs. */
export interface SettlingServices {
  readonly store: BatchStore
  readonly ledger: Ledger
  readonly metrics: Metrics
}

/** How a line with an answer, or an error, ends. */
export function withAnswer({
  id: requestId,
  status,
  dropped,
  row,
  body,
}: LineAnswer): LineResult & { readonly body: Buffer } {
  return { status, requestId, dropped, row, body }
}

/** How a line without an answer ends. It costs nothing. */
export function withoutAnswer(
  batch: Batch,
  { number }: SettledLine,
  without: Unanswered,
): LineResult & { readonly body: Buffer } {
  const requestId = callIdOfLine(batch, number)
  return { status: 0, requestId, dropped: [], row: undefined, body: Buffer.alloc(0), without }
}

/**
 * Stores how a line ended, then charges it. Resolves to false if another node has taken the batch over. Rejects if the write
 * fails while the gateway stops.
 */
export async function settleLine(
  { store, ledger, metrics }: SettlingServices,
  run: BatchRun,
  { line, reserve }: { readonly line: SettledLine; readonly reserve: LineReserve },
  { body, ...result }: LineResult & { readonly body: Buffer },
  work: { readonly isStopping: () => boolean; readonly isHeld: () => Promise<boolean> },
): Promise<boolean> {
  for (let isRepeated = false; ; isRepeated = true) {
    try {
      // While the write failed, another node may have taken the batch over and ended it.
      if (isRepeated && !(await work.isHeld())) return false
      await store.storeResult(run.batch, line.number, result, body)
      break
    } catch (error) {
      // The call was made, so it is not made again while this process runs.
      if (work.isStopping()) throw error
      await delay(RETRY_MS)
    }
  }
  // If the charge cannot be written now, the ledger repeats it, and after a crash the next run of the batch does.
  await reserve.settle(ledger, result.row).catch(() => {})
  const { row } = result
  if (row && row.quota > 0) metrics.add('quota', row.quota, row.model, row.channel)
  const outcome = outcomeOf(result)
  run.count(outcome, row)
  metrics.add('batchLines', 1, outcome)
  return true
}
