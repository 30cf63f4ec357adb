import { setTimeout as delay } from 'node:timers/promises'
import { mergedText } from '../../telemetry/merged-text.ts'
import { METRICS } from '../../telemetry/metric-table.ts'
import { metricsText } from '../../telemetry/series.ts'
import type { WorkerProcess } from './worker-process.ts'

/** Maximum wait for a worker's metrics. */
const WAIT_MS = 1_000

/**
 * Metrics of several workers. The last counters of a worker that has ended are kept, because a decreasing sum
 * would look like a restart of all workers.
 */
export class WorkerMetrics {
  readonly #workers: () => readonly WorkerProcess[]
  readonly #last = new Map<WorkerProcess, string>()
  #ended: readonly [string] | undefined

  constructor(workers: () => readonly WorkerProcess[]) {
    this.#workers = workers
  }

  /**
   * The texts of the other workers, of those that have ended, and of this process. `own` is that of the
   * requesting worker.
   */
  async collect(requester: WorkerProcess, own: string): Promise<readonly string[]> {
    this.#last.set(requester, own)
    const others = this.#workers().filter((worker) => worker !== requester)
    const texts = await Promise.all(others.map((worker) => this.#read(worker)))
    return [...texts.filter((text) => text !== ''), ...(this.#ended ?? []), ownText()]
  }

  /** Keeps the counters of a worker that has ended. */
  keepOf(worker: WorkerProcess): void {
    const last = this.#last.get(worker)
    this.#last.delete(worker)
    if (last === undefined) return
    this.#ended = [mergedText([...(this.#ended ?? []), last], { countersOnly: true })]
  }

  async #read(worker: WorkerProcess): Promise<string> {
    const reading = worker.link.request<string>('own metrics').catch(() => '')
    const text = await Promise.race([reading, delay(WAIT_MS, '', { ref: false })])
    if (text !== '') this.#last.set(worker, text)
    return text
  }
}

function ownText(): string {
  const { name, help, type } = METRICS.residentMemory
  const samples = [{ name, labels: {}, value: process.memoryUsage.rss() }]
  return metricsText([{ name, help, type, samples: () => samples }])
}
