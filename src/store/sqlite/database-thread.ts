import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MessagePort, Worker } from 'node:worker_threads'
import { StoreUnavailable } from '../store-unavailable.ts'
import { deserializeError } from './failure.ts'
import { READS, WRITES, GroupCommit } from './group-commit.ts'
import type { FromThread, ThreadExpectation, ThreadOptions, ToThread } from './messages.ts'

/**
 * Memory limits of a thread. Messages are small and short-lived, so a small young generation suffices; the
 * old one is bounded by the largest result.
 */
const MEMORY_LIMITS = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 512 }

// The extension is .ts in the source and .js in the build.
const WORKER = new URL(`./worker${extname(fileURLToPath(import.meta.url))}`, import.meta.url)

/** Started thread without a task. Does not keep the process alive. */
export type IdleThread = Worker

/**
 * Starts an idle thread, in parallel with reading the configuration, which takes as long. With
 * `expectsMigrations` it loads what a new database needs before it is asked to open it.
 */
export function startThread({ expectsMigrations = false }: ThreadExpectation = {}): IdleThread {
  const thread = new Worker(WORKER, {
    name: 'sluice database',
    workerData: { expectsMigrations } satisfies ThreadExpectation,
    // Omits options of the main program such as `--eval` or the port of a debugger.
    execArgv: [],
    resourceLimits: MEMORY_LIMITS,
  })
  thread.unref()
  return thread
}

/** Connection to a database: a thread, a port whose other end runs on this thread, or a `BatchPort`. */
export interface DatabasePort {
  on(event: 'message', listener: (message: FromThread) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'exit' | 'close', listener: () => void): unknown
  postMessage(message: ThreadOptions | ToThread): void
  ref(): void
}

/** Client of a database thread, which commits what the client queues in groups. */
export class DatabaseThread {
  /** Resolves when the database is open; rejects if that fails. */
  readonly ready: Promise<void>
  readonly #worker: DatabasePort
  readonly #ended: Promise<void>
  readonly #queue: GroupCommit
  #closing = false
  #hasEnded = false
  #threadError: Error | undefined

  /**
   * Assigns a database to an idle thread. Calls `onFailed` if the database fails for good, or the thread ends
   * unexpectedly; from then on, operations are refused.
   */
  constructor(
    options: ThreadOptions,
    onFailed: (reason: StoreUnavailable) => void,
    idle: DatabasePort = startThread(),
  ) {
    this.#worker = idle
    this.#queue = new GroupCommit(
      options.role === 'reader' ? READS : WRITES,
      (operations) => this.#post({ kind: 'batch', operations }),
      onFailed,
    )
    this.#worker.ref()
    this.#post(options)
    const ready = Promise.withResolvers<void>()
    this.ready = ready.promise
    this.ready.catch(() => {})
    let isReady = false
    this.#worker.on('message', (message: FromThread) => {
      if (message.kind === 'ready') {
        isReady = true
        ready.resolve()
      } else if (message.kind === 'refused') {
        this.#threadError = deserializeError(message.failure)
        ready.reject(this.#threadError)
      } else this.#queue.finish(message)
    })
    this.#worker.on('error', (error: Error) => {
      this.#threadError = error
    })
    this.#ended = new Promise((resolve) => {
      const end = idle instanceof MessagePort ? 'close' : 'exit'
      this.#worker.on(end, () => {
        this.#hasEnded = true
        const error = new StoreUnavailable('the database thread has ended', {
          cause: this.#threadError,
          lasting: true,
        })
        ready.reject(error)
        this.#queue.abandon(error)
        if (isReady && !this.#closing) onFailed(error)
        resolve()
      })
    })
  }

  /** Number of operations that are not settled yet. */
  get queued(): number {
    return this.#queue.length
  }

  /** True once the thread has ended. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Queues an operation. Promises settle in order, except as `fairBatch` changes it under load. */
  run(name: string, input: unknown): Promise<unknown> {
    return this.#queue.run(name, input)
  }

  /** Refuses new operations; queued ones still run. */
  refuseMore(reason = new StoreUnavailable('the store is closed')): void {
    this.#queue.refuseMore(reason)
  }

  /** Finishes the queue, then ends the thread. */
  close(): Promise<void> {
    this.refuseMore()
    this.#closing = true
    this.#queue.whenEmpty(() => this.#post({ kind: 'close' }))
    return this.#ended
  }

  #post(message: ThreadOptions | ToThread): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
    this.#worker.postMessage(message)
  }
}
