import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MessagePort, Worker } from 'node:worker_threads'
import { StoreUnavailable } from '../store-unavailable.ts'
import { pack } from './packed-batch.ts'
import { type BatchRule, fairBatch, READS, WRITES } from './fair-batch.ts'
import { deserializeError } from './failure.ts'
import type { BatchReply, SerializedError, FromThread, QueuedOperation, ThreadOptions, ToThread } from './messages.ts'

/**
 * Turns of the event loop that a batch waits at the most until as many operations have gathered as the one
 * before it had.
 */
const MAX_TURNS = 8
/** And milliseconds. */
const MAX_GATHER_MS = 5
/**
 * A batch of fewer is none that the next is expected to equal: with so few callers there is no crowd to wait
 * for.
 */
const MIN_CROWD = 8

interface PendingOperation {
  readonly operation: QueuedOperation
  resolve(value: unknown): void
  reject(error: unknown): void
}

/**
 * Messages are small and soon forgotten: a small nursery keeps the memory of a busy thread small. What one
 * holds beyond is bounded by the largest answer.
 */
const MEMORY_LIMITS = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 512 }

// From source the neighbour is TypeScript, built it is JavaScript.
const WORKER = new URL(`./worker${extname(fileURLToPath(import.meta.url))}`, import.meta.url)

/** A thread that is told later what it is for. Nobody waits for it to end. */
export type IdleThread = Worker

/** Starts one. It takes as long as to read a configuration, and the two may go on beside each other. */
export function startThread(): IdleThread {
  const thread = new Worker(WORKER, {
    name: 'sluice database',
    // Options of the main program (an entry given as text, a debugger's port) are not for its threads.
    execArgv: [],
    resourceLimits: MEMORY_LIMITS,
  })
  thread.unref()
  return thread
}

/** Where a database is served: by a thread, or by whatever answers at the other end of a port. */
export type DatabasePort = IdleThread | MessagePort

/**
 * The main thread's end of a database thread. At most one batch is on its way: what gathers meanwhile is the
 * next one, so that commits are shared exactly as far as the disk is slower than the callers.
 */
export class DatabaseThread {
  /** Resolves when the database is open; rejects if it cannot be opened. */
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
   * Gives an idle thread its orders. `onFailed` is called if the database turns out to be unreliable, or the
   * thread ends though nobody told it to. After that, every operation is refused.
   */
  constructor(
    orders: ThreadOptions,
    onFailed: (reason: StoreUnavailable) => void,
    idle: DatabasePort = startThread(),
  ) {
    this.#worker = idle
    this.#rule = orders.role === 'reader' ? READS : WRITES
    this.#worker.ref()
    this.#post(orders)
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

  /** Operations whose promises are not settled yet. */
  get queued(): number {
    return this.#waiting.length + (this.#inFlight?.length ?? 0)
  }

  /** The thread is gone. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /**
   * Queues an operation. Promises settle in the order of the calls, or as `fairBatch` changes it where many
   * wait.
   */
  run(name: string, input: unknown): Promise<unknown> {
    if (this.#refusal) return Promise.reject(this.#refusal)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ operation: [name, input], resolve, reject })
      this.#sendSoon()
    })
  }

  /** Takes no more operations; those in the queue still run. */
  refuseMore(reason = new StoreUnavailable('the store is closed')): void {
    this.#refusal ??= reason
  }

  /** Lets the queue run out, then ends the thread. */
  close(): Promise<void> {
    this.refuseMore()
    this.#closing = true
    this.#send()
    return this.#ended
  }

  // At the end of this turn of the event loop, or a few turns later: what else they bring crosses with it,
  // and crossing and committing are what costs. Turns are short where there is little to do, and by then most
  // batches are of one operation anyway.
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
      // An input that cannot cross: a mistake in the program, which must not stop the queue.
      this.#inFlight = undefined
      for (const waiting of batch) waiting.reject(error)
      this.#send()
    }
  }

  #post(message: ThreadOptions | ToThread): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin, a window has
    this.#worker.postMessage(message)
  }

  #finish(reply: BatchReply): void {
    const batch = this.#inFlight ?? []
    this.#inFlight = undefined
    this.#sendSoon()
    if (reply.kind === 'failed') {
      for (const waiting of batch) waiting.reject(deserializeError(reply.failure))
      this.#handleFailure(reply.failure)
      return
    }
    for (const [index, waiting] of batch.entries()) {
      const outcome = reply.outcomes[index]
      if (outcome === undefined) waiting.resolve(undefined)
      else if ('failure' in outcome) {
        waiting.reject(deserializeError(outcome.failure))
        this.#handleFailure(outcome.failure)
      } else waiting.resolve(outcome.value)
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
    for (const waiting of abandoned) waiting.reject(error)
  }
}
