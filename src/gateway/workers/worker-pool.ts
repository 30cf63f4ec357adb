import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { WorkersState } from './worker-messages.ts'
import type { SharedSockets } from './shared-sockets.ts'
import type { ProcessEnd, WorkerProcess } from './worker-process.ts'

/**
 * Milliseconds until a worker that ended soon after its start is replaced; doubled each time, up to
 * `MAX_PAUSE_MS`.
 */
const MIN_PAUSE_MS = 100
const MAX_PAUSE_MS = 5_000
/** Milliseconds after which a running worker no longer counts as just started. */
const PROVEN_MS = 10_000
/** Milliseconds until settling a lost worker's calls is tried again, if the database failed. */
const RETRY_MS = 200
/** Milliseconds between two pings of a worker. */
const PING_MS = 500
/**
 * Number of unanswered pings after which a worker gets no new connections; after `LOST_PINGS` it is killed.
 */
const SILENT_PINGS = 3
const LOST_PINGS = 120

/** Settings, sockets and functions that a `WorkerPool` needs. */
interface CrewDependencies {
  readonly planned: number
  readonly sockets: Pick<SharedSockets, 'divide' | 'drop' | 'close'>
  /** Starts a worker process and answers its requests. Rejects if the system cannot start it. */
  readonly start: (index: number) => Promise<WorkerProcess>
  /**
   * Charges the calls that a lost worker left open, and takes back the quota leased to it. Rejects while that
   * is impossible.
   */
  readonly lose: (worker: WorkerProcess) => Promise<void>
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
}

/**
 * The workers of one machine. A worker that ends is replaced as soon as its open calls are charged; one that
 * cannot be started is tried again. Meanwhile the other workers take over its connections.
 */
export class WorkerPool {
  readonly #dependencies: CrewDependencies
  readonly #workers = new Map<number, WorkerProcess>()
  readonly #running: Promise<void>[] = []
  /** Number of unanswered pings of each worker. */
  readonly #unheard = new Map<WorkerProcess, number>()
  readonly #pinging: NodeJS.Timeout
  readonly #stopping = new AbortController()
  /**
   * Workers that are ready and wait until all may listen together; undefined once each may listen as soon as
   * it is ready.
   */
  #waiting: Set<WorkerProcess> | undefined = new Set()
  /** Numbers of the workers whose first start has neither succeeded nor failed yet. */
  readonly #starting = new Set<number>()
  readonly #firstStarts = Promise.withResolvers<void>()

  constructor(dependencies: CrewDependencies) {
    this.#dependencies = dependencies
    this.#pinging = setInterval(() => this.#ping(), PING_MS).unref()
    this.#firstStarts.promise.catch(() => {})
  }

  /** The running workers, in the order of their numbers. */
  get workers(): WorkerProcess[] {
    return [...this.#workers.values()].toSorted((one, other) => one.index - other.index)
  }

  /** The workers that accept calls. */
  get serving(): WorkerProcess[] {
    return this.workers.filter(({ isServing }) => isServing)
  }

  /**
   * Starts all workers. Resolves when all that can be started are listening. Rejects if none can be started.
   */
  async start(): Promise<void> {
    const { planned } = this.#dependencies
    for (let index = 1; index <= planned; index += 1) this.#starting.add(index)
    for (let index = 1; index <= planned; index += 1) this.#running.push(this.#keep(index))
    await this.#firstStarts.promise
    // Let all workers that are ready listen at the same time, so that calls are spread over them from the
    // start.
    const waiting = [...(this.#waiting ?? [])]
    this.#waiting = undefined
    for (const worker of waiting) worker.isServing = true
    this.#divide()
    await Promise.any(waiting.map((worker) => this.#listening(worker))).catch(
      ({ errors }: AggregateError) => {
        throw errors[0]
      },
    )
  }

  /** Handles the message of a worker that it is ready. */
  ready(worker: WorkerProcess): void {
    if (this.#waiting) {
      this.#waiting.add(worker)
      this.#firstStartOf(worker.index)
      return
    }
    worker.isServing = true
    this.#divide()
    this.#listening(worker).catch(() => {})
  }

  /** Handles the message of a worker that it accepts no more connections. */
  leaving(worker: WorkerProcess): void {
    worker.isServing = false
    this.#divide()
  }

  /** Stops all workers. Resolves when the last one has ended and its open calls are charged. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    // The workers have their own handles of these sockets. New connections are refused once the last worker
    // stops listening.
    this.#dependencies.sockets.close()
    for (const { link } of this.workers) link.send('stop')
    await Promise.all(this.#running)
    clearInterval(this.#pinging)
  }

  /** Kills all workers at once. */
  kill(): void {
    this.#stopping.abort()
    clearInterval(this.#pinging)
    for (const worker of this.workers) worker.kill()
  }

  // Counts pings instead of time, because the whole machine may have been suspended meanwhile.
  #ping(): void {
    for (const worker of this.workers) {
      const intervals = this.#unheard.get(worker)
      this.#unheard.set(worker, (intervals ?? 0) + 1)
      if (intervals === undefined)
        worker.link.request('ping').then(
          () => this.#onMessage(worker),
          () => {},
        )
      else if (intervals === SILENT_PINGS && worker.isServing) {
        this.#dependencies.log.warn(
          { worker: worker.index },
          'a worker is silent: the others take its connections',
        )
        this.#divide()
      } else if (intervals === LOST_PINGS) {
        this.#dependencies.log.error(
          { worker: worker.index },
          'a worker has been silent for a minute, and is ended',
        )
        worker.kill()
      }
    }
  }

  #onMessage(worker: WorkerProcess): void {
    const wasSilent = this.#isSilent(worker)
    this.#unheard.delete(worker)
    if (!wasSilent || !worker.isServing) return
    this.#dependencies.log.info({ worker: worker.index }, 'a worker that was silent answers again')
    this.#divide()
  }

  #isSilent(worker: WorkerProcess): boolean {
    return (this.#unheard.get(worker) ?? 0) > SILENT_PINGS
  }

  /** Resolves when a worker listens; rejects, and ends the worker, if it cannot. */
  async #listening(worker: WorkerProcess): Promise<void> {
    try {
      await worker.link.request('listening')
    } catch (error) {
      this.#dependencies.log.error({ worker: worker.index, err: error }, 'a worker cannot listen')
      worker.kill()
      throw error
    }
  }

  /**
   * Divides the connections among the workers that answer pings, and tells all workers how many there are.
   */
  #divide(): void {
    if (this.#stopping.signal.aborted) return
    const { sockets, planned } = this.#dependencies
    const answering = this.serving.filter((worker) => !this.#isSilent(worker))
    sockets.divide(answering)
    const state: WorkersState = { count: this.#workers.size, isComplete: answering.length === planned }
    for (const { link } of this.workers) link.send('crew', state)
  }

  async #keep(index: number): Promise<void> {
    const { signal } = this.#stopping
    for (let pauseMs = MIN_PAUSE_MS; !signal.aborted; ) {
      const startMs = performance.now()
      await this.#run(index)
      if (performance.now() - startMs > PROVEN_MS) pauseMs = MIN_PAUSE_MS
      else {
        await delay(pauseMs, undefined, { signal }).catch(() => {})
        pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)
      }
    }
  }

  /** Runs a worker until it ends, if it can be started, and then charges its open calls. Never rejects. */
  async #run(index: number): Promise<void> {
    const { start, lose, log, sockets } = this.#dependencies
    const { signal } = this.#stopping
    let worker: WorkerProcess
    try {
      worker = await start(index)
    } catch (error) {
      log.error({ worker: index, err: error }, 'a worker cannot be started: it is tried again')
      this.#firstStartOf(index, error)
      return
    }
    this.#workers.set(index, worker)
    if (signal.aborted) worker.kill()
    const end = await worker.ended
    this.#workers.delete(index)
    this.#unheard.delete(worker)
    this.#waiting?.delete(worker)
    sockets.drop(worker)
    this.#divide()
    this.#firstStartOf(index, new Error(`worker ${index} ended before it was ready (${endText(end)})`))
    const isLost = (): Promise<boolean> =>
      lose(worker).then(
        () => true,
        () => false,
      )
    while (!(await isLost())) await delay(RETRY_MS)
    if (!signal.aborted)
      log.warn({ worker: index, pid: worker.pid, ...end }, 'a worker has ended; another one takes its place')
  }

  /** Notes whether a worker's first start succeeded or failed. */
  #firstStartOf(index: number, failure?: unknown): void {
    if (!this.#starting.delete(index) || this.#starting.size > 0) return
    if (this.#waiting && this.#waiting.size > 0) this.#firstStarts.resolve()
    else this.#firstStarts.reject(failure)
  }
}

function endText({ code, signal }: ProcessEnd): string {
  return signal ?? `code ${code}`
}
