import { addHistogram, emptyHistogram } from '../../domain/latency.ts'
import type { SeriesPlan } from '../../domain/series-plan.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import type { CallFacts } from '../../store/operations/call-facts.ts'
import type { UsageCursor } from '../../store/operations/usage-log.ts'
import type { Store } from '../../store/store.ts'

/** Number of rows that are read from the database at a time, so that other reads can run in between. */
const BATCH_ROWS = 20_000

/** Latencies and causes of failures of the calls of some users or keys, in one step of time. */
export interface FactsOfStep {
  /** Number of failed calls. */
  readonly failed: number
  /** Number of failed calls by cause, in the order of `FAILURE_CAUSES`. */
  readonly causes: readonly number[]
  /** Counts by bucket: durations of whole calls, and times to the first byte. */
  readonly latencies: readonly [total: readonly number[], first: readonly number[]]
}

/** Numbers of calls in a step of time, by the sums of usage. */
export interface CountedStep {
  readonly requests: number
  readonly failed: number
}

/**
 * Reads from the usage log what sums by user and key do not have, for each step of time. A step is null if
 * the log does not have all the calls any more that `counted` has, because old rows are removed. The filter
 * names users or keys. `maxRows` limits the number of rows that are read.
 */
export async function factsFromLog(
  store: Pick<Store, 'read'>,
  {
    filter,
    plan,
    counted,
    maxRows = Number.POSITIVE_INFINITY,
  }: {
    readonly filter: UsageFilter
    readonly plan: SeriesPlan
    readonly counted: readonly CountedStep[]
    readonly maxRows?: number
  },
): Promise<(FactsOfStep | null)[]> {
  const found = counted.map(() => new StepOfLog())
  let left = maxRows
  // The rows of one user are in an index.
  const users =
    typeof filter.user_id === 'number' ? [filter.user_id] : await store.read('usersOfFilter', filter)
  for (const userId of users) {
    let after: UsageCursor | null = null
    do {
      const { steps, next } = await readBatch(
        store,
        { filter: { ...filter, user_id: userId }, plan, after },
        counted.length,
      )
      for (const [index, facts] of steps.entries()) found[index]?.add(facts)
      after = next
      left -= BATCH_ROWS
    } while (after && left > 0)
  }
  return found.map((step, index) => {
    const { requests = 0, failed = 0 } = counted[index] ?? {}
    return step.answered >= requests && step.failed >= failed ? step : null
  })
}

function readBatch(
  store: Pick<Store, 'read'>,
  scan: { readonly filter: UsageFilter; readonly plan: SeriesPlan; readonly after: UsageCursor | null },
  steps: number,
): Promise<{ readonly steps: readonly CallFacts[]; readonly next: UsageCursor | null }> {
  return store.read('callFacts', { ...scan, steps, maxRows: BATCH_ROWS })
}

class StepOfLog implements FactsOfStep {
  answered = 0
  failed = 0
  readonly causes: number[] = []
  readonly latencies = [emptyHistogram(), emptyHistogram()] as const

  add({ answered, failed, causes, latencies: [total, first] }: CallFacts): void {
    this.answered += answered
    this.failed += failed
    for (const [index, count] of causes.entries()) this.causes[index] = (this.causes[index] ?? 0) + count
    addHistogram(this.latencies[0], total)
    addHistogram(this.latencies[1], first)
  }
}
