import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { ProcessEnd, WorkerProcess } from './worker-process.ts'

/** Delay before a worker that ended soon after its start is replaced: doubled each time, to the maximum. */
const MIN_PAUSE_MS = 100
const MAX_PAUSE_MS = 5_000
/** Time after which a worker has not ended soon after its start. */
const PROVEN_MS = 10_000
/** Delay before the calls of a lost worker are settled again, where the database could not. */
const RETRY_MS = 200
/** Interval at which silent workers are looked for, and how often one may be silent: for a minute. */
const WATCH_MS = 5_000
const MAX_SILENT = 12

/** Dependencies of a crew of workers. */
interface CrewParts {
  readonly planned: number
  /** Starts the process of one worker, and answers it. */
  readonly start: (index: number) => WorkerProcess
  /** Settles what a worker left open, and takes back what was lent; rejects while that is impossible. */
  readonly lose: (worker: WorkerProcess) => Promise<void>
  readonly log: Pick<Logger, 'warn' | 'error'>
}

/** The workers of one machine: each that ends is replaced, once what it left open is settled. */
export class WorkerCrew {
  readonly #parts: CrewParts
  readonly #workers = new Map<number, WorkerProcess>()
  readonly #running: Promise<void>[] = []
  /** Checks in a row in which a worker had sent nothing. */
  readonly #silent = new Map<WorkerProcess, number>()
  readonly #watch: NodeJS.Timeout
  readonly #stopping = new AbortController()
  /** Workers that wait to listen; undefined once all do as soon as they are ready. */
  #waiting: Set<WorkerProcess> | undefined = new Set()
  readonly #allReady = Promise.withResolvers<void>()

  constructor(parts: CrewParts) {
    this.#parts = parts
    this.#watch = setInterval(() => this.#endSilent(), WATCH_MS).unref()
    this.#allReady.promise.catch(() => {})
  }

  /** The workers that run, by their numbers. */
  get workers(): WorkerProcess[] {
    return [...this.#workers.values()].toSorted((one, other) => one.index - other.index)
  }

  /** The workers that take calls. */
  get serving(): WorkerProcess[] {
    return this.workers.filter(({ isServing }) => isServing)
  }

  /** Starts all workers. Resolves when all listen; rejects if one of them cannot. */
  async start(): Promise<void> {
    for (let index = 1; index <= this.#parts.planned; index += 1) this.#running.push(this.#keep(index))
    await this.#allReady.promise
    // Together: none is called while others are not there yet.
    const waiting = [...(this.#waiting ?? [])]
    this.#waiting = undefined
    await Promise.all(waiting.map((worker) => this.#listen(worker)))
  }

  /** Takes a worker's word that it is ready. */
  ready(worker: WorkerProcess): void {
    if (!this.#waiting) {
      this.#listen(worker).catch((error: unknown) => {
        this.#parts.log.error({ worker: worker.index, err: error }, 'a worker cannot listen')
        worker.kill()
      })
      return
    }
    this.#waiting.add(worker)
    if (this.#waiting.size === this.#parts.planned) this.#allReady.resolve()
  }

  /** Notes that a worker has sent something. */
  heard(worker: WorkerProcess): void {
    this.#silent.delete(worker)
  }

  /** Tells all workers to stop. Resolves when the last one has ended and what it left open is settled. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    for (const { link } of this.workers) link.send('stop')
    await Promise.all(this.#running)
    clearInterval(this.#watch)
  }

  /** Ends all workers at once. */
  kill(): void {
    this.#stopping.abort()
    clearInterval(this.#watch)
    for (const worker of this.workers) worker.kill()
  }

  // Not by the time: the whole machine may have been suspended.
  #endSilent(): void {
    for (const worker of this.workers) {
      const count = (this.#silent.get(worker) ?? 0) + 1
      this.#silent.set(worker, count)
      if (count < MAX_SILENT) continue
      this.#parts.log.error({ worker: worker.index }, 'a worker has been silent for a minute, and is ended')
      worker.kill()
    }
  }

  async #listen(worker: WorkerProcess): Promise<void> {
    await worker.link.request('listen')
    worker.isServing = true
    this.#announceCount()
  }

  #announceCount(): void {
    for (const { link } of this.workers) link.send('count', this.#workers.size)
  }

  async #keep(index: number): Promise<void> {
    const { start, lose, log } = this.#parts
    const { signal } = this.#stopping
    for (let pauseMs = MIN_PAUSE_MS; !signal.aborted; ) {
      const startMs = performance.now()
      const worker = start(index)
      this.#workers.set(index, worker)
      const end = await worker.ended
      this.#workers.delete(index)
      this.#silent.delete(worker)
      if (this.#waiting) {
        this.#waiting.delete(worker)
        this.#allReady.reject(new Error(`worker ${index} ended before it was ready (${endText(end)})`))
      }
      this.#announceCount()
      while (
        !(await lose(worker).then(
          () => true,
          () => false,
        ))
      )
        await delay(RETRY_MS)
      if (signal.aborted) return
      log.warn({ worker: index, pid: worker.pid, ...end }, 'a worker has ended; another one takes its place')
      if (performance.now() - startMs > PROVEN_MS) pauseMs = MIN_PAUSE_MS
      else {
        await delay(pauseMs, undefined, { signal }).catch(() => {})
        pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)
      }
    }
  }
}

function endText({ code, signal }: ProcessEnd): string {
  return signal ?? `code ${code}`
}
