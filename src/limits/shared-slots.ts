import { type Client, type PoolSize, SharedPool } from './shared-pool.ts'

/** How many may be in, and how many may wait for that. */
export interface SlotsSize extends PoolSize {
  /** Places to wait in, shared as the slots are. */
  readonly waiting: () => number
  /** How long one may wait. */
  readonly waitMs: () => number
}

/** The part of the places to wait in that one client may hold while it waits alone. */
const WAITING_ALONE = 0.5

/** Slots that clients share. A client that finds none waits; freed slots go to waiting clients in turn. */
export class SharedSlots {
  readonly #size: SlotsSize
  readonly #slots: SharedPool
  readonly #places: SharedPool
  /** Entries that wait, the oldest first, by client; the client whose turn it is comes first. */
  readonly #queues = new Map<Client, Set<SlotEntry>>()
  readonly #leave = (entry: SlotEntry): void => this.#left(entry)

  constructor(size: SlotsSize) {
    this.#size = size
    this.#slots = new SharedPool(size)
    this.#places = new SharedPool({ ...size, max: size.waiting, aloneShare: WAITING_ALONE })
  }

  /** Slots that are taken. */
  get taken(): number {
    return this.#slots.held
  }

  /** Entries that wait. */
  get waiting(): number {
    return this.#places.held
  }

  /** How many may be in or wait, all together. */
  get capacity(): number {
    return this.#size.max() + this.#size.waiting()
  }

  /** Takes a slot, waits for one, or is turned away where no place to wait is left either. */
  enter(client: Client): SlotEntry {
    const queue = this.#queues.get(client)
    if (!queue && this.#slots.take(client, 1)) return new SlotEntry(client, 'in', this.#leave)
    if (!this.#places.take(client, 1)) return new SlotEntry(client, 'out', this.#leave)
    const entry = new SlotEntry(client, 'waiting', this.#leave)
    if (queue) queue.add(entry)
    else this.#queues.set(client, new Set([entry]))
    entry.waitFor(this.#size.waitMs())
    return entry
  }

  #left(entry: SlotEntry): void {
    const { client, state } = entry
    if (state === 'in') {
      this.#slots.give(client, 1)
      this.#passOn()
    } else this.#unqueue(entry)
  }

  #unqueue(entry: SlotEntry): void {
    const queue = this.#queues.get(entry.client)
    queue?.delete(entry)
    if (queue?.size === 0) this.#queues.delete(entry.client)
    this.#places.give(entry.client, 1)
  }

  /** Gives free slots to clients that wait, each in its turn as far as its share goes. */
  #passOn(): void {
    while (!this.#slots.isFull && this.#passOnOne());
  }

  #passOnOne(): boolean {
    for (const [client, queue] of this.#queues) {
      if (!this.#slots.take(client, 1)) continue
      const first = queue.values().next().value as SlotEntry
      this.#unqueue(first)
      // Its next turn comes after those of all others.
      if (this.#queues.delete(client)) this.#queues.set(client, queue)
      first.admit()
      return true
    }
    return false
  }
}

/** One that has a slot, waits for one, or has none: it was turned away, waited in vain, or left. */
export class SlotEntry {
  readonly client: Client
  /** Settles when it waits no more; undefined where it never did. */
  readonly decided: Promise<void> | undefined
  #state: 'in' | 'waiting' | 'out'
  readonly #leave: (entry: SlotEntry) => void
  #decide: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined

  /** Made by its slots alone. */
  constructor(client: Client, state: 'in' | 'waiting' | 'out', leave: (entry: SlotEntry) => void) {
    this.client = client
    this.#state = state
    this.#leave = leave
    if (state === 'waiting') this.decided = new Promise((resolve) => (this.#decide = resolve))
  }

  get state(): 'in' | 'waiting' | 'out' {
    return this.#state
  }

  /** Whether it has a slot. */
  get isIn(): boolean {
    return this.#state === 'in'
  }

  /** Gives the slot back, or the place in the queue; nothing where it has neither. */
  leave(): void {
    if (this.#state === 'out') return
    this.#leave(this)
    this.#end('out')
  }

  /** Called by its slots alone. */
  waitFor(ms: number): void {
    this.#timer = setTimeout(() => this.leave(), ms).unref()
  }

  /** Called by its slots alone. */
  admit(): void {
    this.#end('in')
  }

  #end(state: 'in' | 'out'): void {
    this.#state = state
    clearTimeout(this.#timer)
    this.#decide?.()
  }
}
