import { MessagePort, type Worker } from 'node:worker_threads'
import { startThread as startHelperThread } from '../../ipc/start-thread.ts'
import type { SecretState } from '../secret-state.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import { deserializeError } from './failure.ts'
import { READ_BATCH_RULE, WRITE_BATCH_RULE, GroupCommit } from './group-commit.ts'
import type { MessageFromThread, ThreadExpectation, ThreadOptions, MessageToThread } from './messages.ts'

/**
 * Memory limits of a thread in MB. Messages are small and short-lived, so a small young generation is enough.
 * The old generation limits the largest result.
 */
const MEMORY_LIMITS = { maxYoungMb: 4, maxOldMb: 512 }

/** A started thread that has no database yet. Does not keep the process alive. */
export type IdleThread = Worker

/**
 * Starts a thread while the configuration is read, which takes about as long. With `expectsMigrations`, the
 * thread already loads the code that a new database needs.
 */
export function startThread({ expectsMigrations = false }: ThreadExpectation = {}): IdleThread {
  const workerData: ThreadExpectation = { expectsMigrations }
  const options = { name: 'sluice database', workerData, ...MEMORY_LIMITS }
  const thread = startHelperThread('./worker', import.meta.url, options)
  thread.unref()
  return thread
}

/** What runs the operations on a database: a thread, or a message port to a database on this thread. */
export interface DatabasePort {
  on(event: 'message', listener: (message: MessageFromThread) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'exit' | 'close', listener: () => void): unknown
  postMessage(message: ThreadOptions | MessageToThread): void
  ref(): void
}

/** Queues operations for a database thread, and sends them in batches that are committed together. */
export class DatabaseThread {
  /** Resolves when the database is open, to which secret it has; rejects if that fails. */
  readonly ready: Promise<SecretState | undefined>
  readonly #worker: DatabasePort
  readonly #ended: Promise<void>
  readonly #queue: GroupCommit
  #closing = false
  #hasEnded = false
  #threadError: Error | undefined

  /**
   * Gives a database to an idle thread. Calls `onFailed` if the database fails permanently or the thread ends
   * unexpectedly. All later operations are then refused.
   */
  constructor(
    options: ThreadOptions,
    onFailed: (reason: StoreUnavailable) => void,
    idle: DatabasePort = startThread(),
  ) {
    this.#worker = idle
    this.#queue = new GroupCommit(
      options.role === 'reader' ? READ_BATCH_RULE : WRITE_BATCH_RULE,
      (operations) => this.#post({ kind: 'batch', operations }),
      onFailed,
    )
    this.#worker.ref()
    this.#post(options)
    const ready = Promise.withResolvers<SecretState | undefined>()
    this.ready = ready.promise
    this.ready.catch(() => {})
    let isReady = false
    this.#worker.on('message', (message: MessageFromThread) => {
      if (message.kind === 'ready') {
        isReady = true
        ready.resolve(message.secretState)
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

  /** Number of operations whose promise is pending. */
  get queued(): number {
    return this.#queue.length
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /**
   * Queues an operation. Promises resolve or reject in the order of the calls, unless `fairBatch` changes the
   * order under load.
   */
  run(name: string, input: unknown): Promise<unknown> {
    return this.#queue.run(name, input)
  }

  /** Refuses new operations; queued ones still run. */
  refuseMore(reason = new StoreUnavailable('the store is closed')): void {
    this.#queue.refuseMore(reason)
  }

  /** Waits until all queued operations are done, then ends the thread. */
  close(): Promise<void> {
    this.refuseMore()
    this.#closing = true
    this.#queue.whenEmpty(() => this.#post({ kind: 'close' }))
    return this.#ended
  }

  #post(message: ThreadOptions | MessageToThread): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
    this.#worker.postMessage(message)
  }
}
