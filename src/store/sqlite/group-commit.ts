import type { StoreUnavailable } from '../store-unavailable.ts'
import { deserializeError } from './failure.ts'
import type { BatchReply, QueuedOperation, SerializedError } from './messages.ts'
import { packBatch, type PackedBatch } from './packed-batch.ts'

/** Maximum number of event loop turns to wait until a batch is as large as the previous one. */
const MAX_TURNS = 8
/** Maximum milliseconds to wait until a batch is as large as the previous one. */
const MAX_GATHER_MS = 5
/**
 * If the previous batch had at least this many operations, the next one waits to become as large. Otherwise
 * waiting would not make batches larger.
 */
const MIN_CROWD = 8

interface PendingOperation {
  readonly operation: QueuedOperation
  resolve(value: unknown): void
  reject(error: unknown): void
}

/**
 * Queue for the operations of a database. Only one batch is processed at a time; operations that arrive
 * meanwhile form the next batch (group commit). So batches become large only if operations arrive faster than
 * the disk commits them.
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
   * `send` sends a batch to the database; pass the reply to `finish`. `onFailed` is called if a reply reports
   * that the database has failed permanently.
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

  /** Number of operations whose promise is pending. */
  get length(): number {
    return this.#waiting.length + (this.#inFlight?.length ?? 0)
  }

  /**
   * Queues an operation. Promises resolve or reject in the order of the calls, unless `fairBatch` changes the
   * order under load.
   */
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

  /** Calls `callback` as soon as the queue is empty. New operations must already be refused. */
  whenEmpty(callback: () => void): void {
    this.#onEmpty = callback
    this.#sendBatch()
  }

  /** Resolves or rejects the promises of the current batch according to the reply. */
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

  /** Rejects all queued operations, and all later ones. */
  abandon(error: StoreUnavailable): void {
    this.refuseMore(error)
    const abandoned = [...(this.#inFlight ?? []), ...this.#waiting]
    this.#inFlight = undefined
    this.#waiting = []
    for (const pending of abandoned) pending.reject(error)
  }

  // A batch is sent at the end of this turn of the event loop, or a few turns later, because its operations
  // share the cost of posting and committing. Under low load the delay is short, because turns are short
  // then.
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
      this.#send(packBatch(batch.map(({ operation }) => operation)))
    } catch (error) {
      // If an input cannot be cloned, the operations of this batch fail, but the queue continues.
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

/**
 * How an operation may be reordered in the queue: a user id if it counts against that user's share of a
 * batch, `order` if it must keep its place, `free` if it counts against no share.
 */
type Turn = number | 'order' | 'free'

/** Rule for choosing the operations of the next batch. */
export interface BatchRule {
  /** Maximum number of operations in a batch. */
  readonly maxOperations: number
  /** Maximum number of operations of one user in a batch. */
  readonly maxPerUser: number
  readonly turnOf: (operation: QueuedOperation) => Turn
}

const CALL_WRITES: ReadonlySet<string> = new Set([
  'hold',
  'growHold',
  'markProgress',
  'parkHold',
  'releaseHold',
  'settle',
])
/** Writes of calls that keep something. */
const KEEPING_WRITES: ReadonlySet<string> = new Set([
  'claimCall',
  'endClaim',
  'releaseClaim',
  'storeKept',
  'storeKeptPart',
])
/** User id used for reads of the usage of all users. */
const ALL_USERS = 0

/**
 * Rule for writes. Writes keep their order if all of them fit into one batch. Otherwise each user in turn
 * gets one write of a call into the batch; the writes of one user keep their order. The maximum size of a
 * batch limits the time of a commit.
 */
export const WRITE_BATCH_RULE: BatchRule = {
  maxOperations: 500,
  maxPerUser: Number.POSITIVE_INFINITY,
  turnOf([name, input]) {
    if (CALL_WRITES.has(name)) return (input as { user_id: number }).user_id
    return KEEPING_WRITES.has(name) ? (input as { userId: number }).userId : 'order'
  },
}

/**
 * Rule for reads. Reads need no order. Each user can have only one read of the usage log in a batch, because
 * such a read may take long.
 */
export const READ_BATCH_RULE: BatchRule = {
  maxOperations: 500,
  maxPerUser: 1,
  turnOf([, input]) {
    const filter = (input as { readonly filter?: { readonly user_id?: number } } | undefined)?.filter
    return filter ? (filter.user_id ?? ALL_USERS) : 'free'
  },
}

/** Divides a queue into the next batch and the remaining operations. Both keep the order of the queue. */
export function fairBatch<Pending extends { readonly operation: QueuedOperation }>(
  queue: Pending[],
  { maxOperations, maxPerUser, turnOf }: BatchRule,
): { readonly batch: Pending[]; readonly rest: Pending[] } {
  if (queue.length <= Math.min(maxOperations, maxPerUser)) return { batch: queue, rest: [] }
  // In each round, each user has at most one operation, so that users take turns.
  const rounds: Pending[][] = [[]]
  const counts = new Map<number, number>()
  let inTurns = 0
  for (; inTurns < queue.length; inTurns += 1) {
    const pending = queue[inTurns] as Pending
    const turn = turnOf(pending.operation)
    if (turn === 'order') break
    let round = 0
    if (turn !== 'free') {
      round = counts.get(turn) ?? 0
      counts.set(turn, round + 1)
    }
    ;(rounds[round] ??= []).push(pending)
  }
  const taken = new Set(rounds.slice(0, maxPerUser).flat().slice(0, maxOperations))
  if (taken.size === inTurns) for (const pending of queue.slice(inTurns, maxOperations)) taken.add(pending)
  return {
    batch: queue.filter((pending) => taken.has(pending)),
    rest: queue.filter((pending) => !taken.has(pending)),
  }
}
