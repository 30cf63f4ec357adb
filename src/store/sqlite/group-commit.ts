import type { StoreUnavailable } from '../store-unavailable.ts'
import { deserializeError } from './failure.ts'
import { type BatchRule, fairBatch } from './fair-batch.ts'
import type { BatchReply, QueuedOperation, SerializedError } from './messages.ts'
import { pack, type PackedBatch } from './packed-batch.ts'

/** Maximum turns of the event loop to wait for a batch as large as the previous one. */
const MAX_TURNS = 8
/** Maximum milliseconds of that wait. */
const MAX_GATHER_MS = 5
/** Minimum size of the previous batch for which to wait; with fewer operations, waiting gathers nothing. */
const MIN_CROWD = 8

interface PendingOperation {
  readonly operation: QueuedOperation
  resolve(value: unknown): void
  reject(error: unknown): void
}

/**
 * Queue of a database's operations. At most one batch is in flight; operations that arrive during it form the
 * next one (group commit), so that batches grow only as far as the disk is slower than the clients.
 */
export class GroupCommit {
  readonly #rule: BatchRule
  readonly #send: (operations: PackedBatch) => void
  readonly #onFailed: (reason: StoreUnavailable) => void
  #waiting: PendingOperation[] = []
  #inFlight: PendingOperation[] | undefined
  #refusal: StoreUnavailable | undefined
  #onEmpty: (() => void) | undefined
  #scheduled = false
  #lastLength = 0

  /**
   * `send` passes a batch to the database, whose reply is passed to `finish`. Calls `onFailed` if a reply
   * reports that the database has failed for good.
   */
  constructor(
    rule: BatchRule,
    send: (operations: PackedBatch) => void,
    onFailed: (reason: StoreUnavailable) => void,
  ) {
    this.#rule = rule
    this.#send = send
    this.#onFailed = onFailed
  }

  /** Number of operations that are not settled yet. */
  get length(): number {
    return this.#waiting.length + (this.#inFlight?.length ?? 0)
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
  refuseMore(reason: StoreUnavailable): void {
    this.#refusal ??= reason
  }

  /** Calls back once nothing is queued any more. New operations must be refused by then. */
  whenEmpty(callback: () => void): void {
    this.#onEmpty = callback
    this.#sendBatch()
  }

  /** Settles the batch in flight by the reply to it. */
  finish(reply: BatchReply): void {
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

  /** Rejects everything that is queued, and all later operations. */
  abandon(error: StoreUnavailable): void {
    this.refuseMore(error)
    const abandoned = [...(this.#inFlight ?? []), ...this.#waiting]
    this.#inFlight = undefined
    this.#waiting = []
    for (const pending of abandoned) pending.reject(error)
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
      this.#sendBatch()
    }
    setImmediate(turn)
  }

  #sendBatch(): void {
    if (this.#inFlight) return
    if (this.#waiting.length === 0) {
      this.#onEmpty?.()
      return
    }
    const { batch, rest } = fairBatch(this.#waiting, this.#rule)
    this.#waiting = rest
    this.#inFlight = batch
    this.#lastLength = batch.length
    try {
      this.#send(pack(batch.map(({ operation }) => operation)))
    } catch (error) {
      // An input that cannot be cloned is a bug of the caller, and must not block the queue.
      this.#inFlight = undefined
      for (const pending of batch) pending.reject(error)
      this.#sendBatch()
    }
  }

  #handleFailure(failure: SerializedError): void {
    if (failure.kind !== 'unavailable' || !failure.lasting) return
    const reason = deserializeError(failure) as StoreUnavailable
    this.abandon(reason)
    this.#onFailed(reason)
  }
}
