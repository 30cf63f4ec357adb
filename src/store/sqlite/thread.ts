import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MessagePort, Worker } from 'node:worker_threads'
import { StoreUnavailable } from '../store-unavailable.ts'
import { pack } from './packed-batch.ts'
import { type BatchRule, fairBatch, READS, WRITES } from './fair-batch.ts'
import { deserializeError } from './failure.ts'
import type {
  BatchReply,
  SerializedError,
  FromThread,
  QueuedOperation,
  ThreadOptions,
  ToThread,
} from './messages.ts'

/** Most turns of the event loop to wait for as many operations as the previous batch had. */
const MAX_TURNS = 8
/** Most milliseconds of that wait. */
const MAX_GATHER_MS = 5
/** Smallest previous batch for which to wait: with fewer operations, waiting gathers nothing. */
const MIN_CROWD = 8

interface PendingOperation {
  readonly operation: QueuedOperation
  resolve(value: unknown): void
  reject(error: unknown): void
}

/**
 * Memory limits of a thread. Messages are small and short-lived, so a small young generation suffices; the
 * old one is bounded by the largest result.
 */
const MEMORY_LIMITS = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 512 }

// The extension is .ts in the source and .js in the build.
const WORKER = new URL(`./worker${extname(fileURLToPath(import.meta.url))}`, import.meta.url)

/** Started thread without a task. Does not keep the process alive. */
export type IdleThread = Worker

/** Starts an idle thread. Can run in parallel with reading the configuration, which takes as long. */
export function startThread(): IdleThread {
  const thread = new Worker(WORKER, {
    name: 'sluice database',
    // Without the options of the main program, such as `--eval` or a debugger's port.
    execArgv: [],
    resourceLimits: MEMORY_LIMITS,
  })
  thread.unref()
  return thread
}

/** Connection to a database: a thread, or a port whose other end runs on this thread. */
export type DatabasePort = IdleThread | MessagePort

/**
 * Client of a database thread. At most one batch is in flight; operations that arrive meanwhile form the next
 * one (group commit), so that batches grow only as far as the disk is slower than the clients.
 */
export class DatabaseThread {
  /** Resolves when the database is open; rejects if that fails. */
  readonly ready: Promise<void>
  readonly #worker: DatabasePort
  readonly #ended: Promise<void>
  readonly #rule: BatchRule
  readonly #onFailed: (reason: StoreUnavailable) => void
  #waiting: PendingOperation[] = []
  #inFlight: PendingOperation[] | undefined
  #refusal: StoreUnavailable | undefined
  #closing = false
  #hasEnded = false
  #scheduled = false
  #lastLength = 0
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
    this.#rule = options.role === 'reader' ? READS : WRITES
    this.#worker.ref()
    this.#post(options)
    this.#onFailed = onFailed
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
      } else this.#finish(message)
    })
    this.#worker.on('error', (error) => {
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
        this.#abandon(error)
        if (isReady && !this.#closing) onFailed(error)
        resolve()
      })
    })
  }

  /** Number of operations that are not settled yet. */
  get queued(): number {
    return this.#waiting.length + (this.#inFlight?.length ?? 0)
  }

  /** True once the thread has ended. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Queues an operation. Promises settle in order, except as `fairBatch` changes it under load. */
  run(name: string, input: unknown): Promise<unknown> {
    if (this.#refusal) return Promise.reject(this.#refusal)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ operation: [name, input], resolve, reject })
      this.#sendSoon()
    })
  }

  /** Refuses new operations; queued ones still run. */
  refuseMore(reason = new StoreUnavailable('the store is closed')): void {
    this.#refusal ??= reason
  }

  /** Finishes the queue, then ends the thread. */
  close(): Promise<void> {
    this.refuseMore()
    this.#closing = true
    this.#send()
    return this.#ended
  }

  // Sends at the end of this turn of the event loop, or a few turns later: larger batches share the costs of
  // posting and committing. Turns are short under low load, where most batches have one operation anyway.
  #sendSoon(): void {
    if (this.#inFlight || this.#scheduled) return
    this.#scheduled = true
    let turns = 0
    const untilMs = performance.now() + MAX_GATHER_MS
    const turn = (): void => {
      turns += 1
      const isCrowd = this.#lastLength >= MIN_CROWD && this.#waiting.length < this.#lastLength
      if (isCrowd && turns < MAX_TURNS && performance.now() < untilMs) {
        setImmediate(turn)
        return
      }
      this.#scheduled = false
      this.#send()
    }
    setImmediate(turn)
  }

  #send(): void {
    if (this.#inFlight) return
    if (this.#waiting.length === 0) {
      if (this.#closing) this.#post({ kind: 'close' })
      return
    }
    const { batch, rest } = fairBatch(this.#waiting, this.#rule)
    this.#waiting = rest
    this.#inFlight = batch
    this.#lastLength = batch.length
    try {
      this.#post({ kind: 'batch', operations: pack(batch.map(({ operation }) => operation)) })
    } catch (error) {
      // An input that cannot be cloned is a bug of the caller, and must not block the queue.
      this.#inFlight = undefined
      for (const pending of batch) pending.reject(error)
      this.#send()
    }
  }

  #post(message: ThreadOptions | ToThread): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
    this.#worker.postMessage(message)
  }

  #finish(reply: BatchReply): void {
    const batch = this.#inFlight ?? []
    this.#inFlight = undefined
    this.#sendSoon()
    if (reply.kind === 'failed') {
      for (const pending of batch) pending.reject(deserializeError(reply.failure))
      this.#handleFailure(reply.failure)
      return
    }
    for (const [index, pending] of batch.entries()) {
      const outcome = reply.outcomes[index]
      if (outcome === undefined) pending.resolve(undefined)
      else if ('failure' in outcome) {
        pending.reject(deserializeError(outcome.failure))
        this.#handleFailure(outcome.failure)
      } else pending.resolve(outcome.value)
    }
  }

  #handleFailure(failure: SerializedError): void {
    if (failure.kind !== 'unavailable' || !failure.lasting) return
    const reason = deserializeError(failure) as StoreUnavailable
    this.#abandon(reason)
    this.#onFailed(reason)
  }

  #abandon(error: StoreUnavailable): void {
    this.refuseMore(error)
    const abandoned = [...(this.#inFlight ?? []), ...this.#waiting]
    this.#inFlight = undefined
    this.#waiting = []
    for (const pending of abandoned) pending.reject(error)
  }
}
