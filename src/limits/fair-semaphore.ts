import { type PoolClient, type PoolSize, FairPool } from './fair-pool.ts'
import { GatewayError } from '../errors.ts'

/** Number of slots, and limits of the queue. */
interface SemaphoreSize extends PoolSize {
  /** Maximum length of the queue. Clients share the queue fairly, as they share the slots. */
  readonly waiting: () => number
  /** Maximum time in the queue, in milliseconds. */
  readonly waitMs: () => number
}

/** Share of the queue that a client may occupy while no other client is active. */
const QUEUE_ALONE_SHARE = 0.5

/**
 * A semaphore whose slots clients share fairly. A client that gets no slot waits in a queue; free slots go to
 * waiting clients in turn.
 */
export class FairSemaphore {
  readonly #size: SemaphoreSize
  readonly #slots: FairPool
  readonly #queueRoom: FairPool
  /** Waiting entries by client, the oldest first. The client whose turn is next comes first. */
  readonly #queues = new Map<PoolClient, Set<SlotEntry>>()
  readonly #leave = (entry: SlotEntry): void => this.#onLeave(entry)

  constructor(size: SemaphoreSize) {
    this.#size = size
    this.#slots = new FairPool(size)
    this.#queueRoom = new FairPool({ ...size, max: size.waiting, aloneShare: QUEUE_ALONE_SHARE })
  }

  /** Number of slots. */
  get max(): number {
    return this.#size.max()
  }

  /** Number of slots taken. */
  get taken(): number {
    return this.#slots.held
  }

  /** Number of waiting entries. */
  get waiting(): number {
    return this.#queueRoom.held
  }

  /** Maximum number of entries that have a slot or wait. */
  get capacity(): number {
    return this.#size.max() + this.#size.waiting()
  }

  /** Takes a slot, joins the queue, or is refused if the client's share of the queue is full. */
  enter(client: PoolClient): SlotEntry {
    const queue = this.#queues.get(client)
    if (!queue && this.#slots.take(client, 1)) return new SlotEntry(client, 'in', this.#leave)
    if (!this.#queueRoom.take(client, 1)) return new SlotEntry(client, 'out', this.#leave)
    const entry = new SlotEntry(client, 'waiting', this.#leave)
    if (queue) queue.add(entry)
    else this.#queues.set(client, new Set([entry]))
    entry.waitFor(this.#size.waitMs())
    return entry
  }

  #onLeave(entry: SlotEntry): void {
    const { client, state } = entry
    if (state === 'in') {
      this.#slots.give(client, 1)
      this.#admitWaiting()
    } else this.#dequeue(entry)
  }

  #dequeue(entry: SlotEntry): void {
    const queue = this.#queues.get(entry.client)
    queue?.delete(entry)
    if (queue?.size === 0) this.#queues.delete(entry.client)
    this.#queueRoom.give(entry.client, 1)
  }

  /** Gives free slots to waiting clients in turn, unless a client would exceed its share. */
  #admitWaiting(): void {
    while (!this.#slots.isFull && this.#admitNext());
  }

  #admitNext(): boolean {
    for (const [client, queue] of this.#queues) {
      if (!this.#slots.take(client, 1)) continue
      const first = queue.values().next().value as SlotEntry
      this.#dequeue(first)
      // Moves the client behind all other waiting clients.
      if (this.#queues.delete(client)) this.#queues.set(client, queue)
      first.admit()
      return true
    }
    return false
  }
}

/** A request for a slot. It has one (`in`), waits, or has ended (`out`: refused, timed out or released). */
export class SlotEntry {
  readonly client: PoolClient
  /** Resolves when the wait ends, with or without a slot; undefined if the entry never waited. */
  readonly decided: Promise<void> | undefined
  #state: 'in' | 'waiting' | 'out'
  readonly #leave: (entry: SlotEntry) => void
  #decide: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined

  /** Called only by `FairSemaphore`. */
  constructor(client: PoolClient, state: 'in' | 'waiting' | 'out', leave: (entry: SlotEntry) => void) {
    this.client = client
    this.#state = state
    this.#leave = leave
    if (state === 'waiting') this.decided = new Promise((resolve) => (this.#decide = resolve))
  }

  get state(): 'in' | 'waiting' | 'out' {
    return this.#state
  }

  /** Whether the entry has a slot. */
  get isIn(): boolean {
    return this.#state === 'in'
  }

  /** Releases the slot or the place in the queue, if the entry has one. */
  leave(): void {
    if (this.#state === 'out') return
    this.#leave(this)
    this.#end('out')
  }

  /** Starts the timeout of the wait, in milliseconds. Called only by `FairSemaphore`. */
  waitFor(ms: number): void {
    this.#timer = setTimeout(() => this.leave(), ms).unref()
  }

  /** Ends the wait by giving the entry a slot. Called only by `FairSemaphore`. */
  admit(): void {
    this.#end('in')
  }

  #end(state: 'in' | 'out'): void {
    this.#state = state
    clearTimeout(this.#timer)
    this.#decide?.()
  }
}

/** Maximum time for which a request waits for a slot, in milliseconds. */
const WAIT_MS = 2_000
/**
 * Length of the queue, and number of slots for account endpoints, as a fraction of the slots for calls; at
 * least `LEAST_WAITING` and `LEAST_ACCOUNTS`.
 */
const PART = 1 / 8
const LEAST_WAITING = 8
const LEAST_ACCOUNTS = 16
/** Maximum number of response streams that last until their clients disconnect. */
const MAX_STREAMS = 64
/**
 * Share of the slots that one key may have if no other key has called recently. The rest stays free for the
 * next key.
 */
const ALONE = 31 / 32

/**
 * The error if no slot became free in time. Created once, because it is thrown often and capturing a stack
 * trace is slow.
 */
export const NO_SLOT_ERROR = new GatewayError(
  'overloaded',
  'the maximum of calls under way is reached, for the gateway or for this client; try again',
  { retryAfter: 1 },
)

/**
 * Slots for requests. API keys share those for model calls; address blocks share those for account endpoints.
 */
export class RequestSlots {
  readonly calls: FairSemaphore
  readonly accounts: FairSemaphore

  /** `maxCalls` returns `options.max_calls`, which may change. `nowMs` is a monotonic clock. */
  constructor(maxCalls: () => number, nowMs: () => number) {
    const part = (least: number) => () => Math.max(least, Math.ceil(maxCalls() * PART))
    const rules = { aloneShare: ALONE, waitMs: () => WAIT_MS, waiting: part(LEAST_WAITING), nowMs }
    this.calls = new FairSemaphore({ ...rules, max: maxCalls })
    this.accounts = new FairSemaphore({ ...rules, max: part(LEAST_ACCOUNTS) })
  }

  /** Maximum number of account slots for streams, because a stream occupies its slot for a long time. */
  get streams(): number {
    return Math.min(MAX_STREAMS, Math.floor(this.accounts.max / 2))
  }

  /** Maximum number of requests that have a slot or wait for one. */
  get bound(): number {
    return this.calls.capacity + this.accounts.capacity
  }
}
