import type { Ledger } from '../../accounts/ledger/ledger.ts'
import type { OpenHold } from '../../accounts/ledger/open-hold.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import { StoreUnavailable } from '../../store/store-unavailable.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Batch, BatchEnd, LineOutcome } from './batch.ts'
import { keepBatch, type LeaseServices, releaseBatch } from './batch-leases.ts'
import { messageResultLines, outcomeOf, resultLines } from './batch-results.ts'
import { countedFacts } from './batch-run.ts'
import type { BatchStore } from './batch-store.ts'
import { type FileStore, newFileId } from './file-store.ts'

/** Number of bytes of results that are written between two checks that there is room. */
const CHECKED_BYTES = 1024 * 1024

/** Services that the end of a batch needs. */
export interface EndServices extends LeaseServices {
  readonly store: BatchStore
  readonly files: Pick<FileStore, 'storeResult'>
  readonly ledger: Ledger
  readonly metrics: Metrics
}

/** Ends a batch of which nothing is under way: stores its results, then that it has ended. May be repeated after a crash. */
export async function endBatch(
  services: EndServices,
  given: Batch,
  stopped: BatchEnd,
  hold: OpenHold | undefined,
): Promise<void> {
  if (given.facts.endedMs === undefined) await storeEnd(services, given, stopped, hold)
  await keepBatch(services, given)
  await closeBatch(services, given, hold)
}

async function storeEnd(
  services: EndServices,
  given: Batch,
  stopped: BatchEnd,
  hold: OpenHold | undefined,
): Promise<void> {
  const { store, files, ledger, metrics } = services
  const { how, atMs } = given.facts.ending ?? { how: stopped, atMs: Date.now() }
  const { total, counts, path, keepMs } = given.facts
  const left = total - counts.completed - counts.failed - counts.expired - counts.cancelled
  const hasErrors = total > counts.completed
  const facts = {
    ...given.facts,
    ending: { how, atMs },
    outputFile: given.facts.outputFile ?? (counts.completed > 0 ? newFileId() : null),
    errorFile: given.facts.errorFile ?? (hasErrors ? newFileId() : null),
  }
  const batch = { ...given, facts }
  await keepBatch(services, batch)
  // Nothing is kept for a deleted user.
  if (!(await store.save(batch))) return store.remove(batch)
  const nowMs = Date.now()
  if (path === '/v1/messages')
    await store.storeResults(batch, nowMs, whileKept(services, batch, messageResultLines(store, batch, how)))
  else
    for (const [id, which] of [
      [facts.outputFile, 'results'],
      [facts.errorFile, 'errors'],
    ] as const) {
      if (id === null) continue
      const filename = `${batch.id}_${which === 'results' ? 'output' : 'error'}.jsonl`
      const times = { createdMs: nowMs, expiresMs: nowMs + keepMs }
      const file = { id, userId: batch.userId, filename, purpose: 'batch_output', ...times } as const
      await files.storeResult(file, whileKept(services, batch, resultLines(store, batch, which, how)))
    }
  await keepBatch(services, batch)
  // Whoever sees that a batch has ended may spend what it held.
  if (hold) await ledger.release(hold)
  const outcome: LineOutcome = how === 'completed' ? 'failed' : how
  const counted = { ...counts, [outcome]: counts[outcome] + left }
  await store.save({ ...batch, facts: { ...facts, endedMs: nowMs, counts: counted } })
  if (left > 0) metrics.add('batchLines', left, outcome)
}

/**
 * These lines, if the node still has the lease at their end. Otherwise the node that ended the batch meanwhile may have removed
 * results, and the lines that lack them must not replace those that it has stored. Throws if they are large, and there is no
 * room for them: the results of the lines are kept until there is.
 */
async function* whileKept(
  services: EndServices,
  batch: Batch,
  lines: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, void, undefined> {
  let unchecked = 0
  for await (const line of lines) {
    unchecked += line.length
    if (unchecked > CHECKED_BYTES) {
      if (!(await services.store.hasSpace()))
        throw new StoreUnavailable('there is no room for the results of a batch')
      unchecked = 0
    }
    yield line
  }
  await keepBatch(services, batch)
}

/** Removes what only the work on a batch needs. */
export async function closeBatch(
  services: EndServices,
  batch: Pick<Batch, 'id' | 'userId'>,
  hold: OpenHold | undefined,
): Promise<void> {
  if (hold) await services.ledger.release(hold)
  await services.store.close(batch)
  await releaseBatch(services, batch)
}

/** The lines of a batch that have a result, those whose charge may not be written, and the counts. */
export async function resultsSoFar(
  { store, rows }: Pick<EndServices, 'store' | 'rows'>,
  batch: Batch,
): Promise<{
  readonly ended: ReadonlySet<number>
  readonly unsettled: ReadonlyMap<number, SettledCall>
  readonly facts: ReturnType<typeof countedFacts>
}> {
  const ended = new Set<number>()
  const charged = new Map<number, SettledCall>()
  let facts: ReturnType<typeof countedFacts> = {
    counts: { completed: 0, failed: 0, cancelled: 0, expired: 0 },
    usage: { input: 0, cached: 0, output: 0, reasoning: 0 },
  }
  for await (const result of store.results(batch)) {
    ended.add(result.number)
    if (result.row) charged.set(result.number, result.row)
    facts = countedFacts(facts, outcomeOf(result), result.row)
  }
  const settled = new Set(await rows.read('settledCalls', { ids: [...charged.values()].map(({ id }) => id) }))
  const unsettled = new Map([...charged].filter(([, { id }]) => !settled.has(id)))
  return { ended, unsettled, facts }
}
