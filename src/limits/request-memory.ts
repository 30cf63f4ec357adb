import { type PoolClient, type PoolOwner, TwoLevelPool } from './fair-pool.ts'

const MIB = 1024 * 1024
/** Minimum number of bytes for amounts of any size. */
const SHARED_BYTES = 192 * MIB
/** Minimum number of bodies of the maximum size for which there is memory. */
const SHARED_BODIES = 4
/** Part of that memory that one client may have while no other has called recently. */
const SHARED_MAX_PART = 7 / 8
/** Additional bytes for small amounts only. */
const RESERVE_BYTES = 64 * MIB
/** Part of the reserve that one client may have while no other has called recently. */
const RESERVE_MAX_PART = 1 / 2
/** Maximum size of a small amount. */
const SMALL_BYTES = 256 * 1024
/** Minimum size of an amount that is reported as garbage when it is returned. */
const LARGE_BYTES = 4 * MIB

/** Bytes of memory that one request holds for one purpose. Only `RequestMemory` changes them. */
export class MemoryAllocation {
  readonly owner: PoolOwner
  shared = 0
  reserved = 0
  /** Bytes beyond the owner's share. */
  beyond = 0

  constructor(owner: PoolOwner) {
    this.owner = owner
  }

  get bytes(): number {
    return this.shared + this.reserved + this.beyond
  }
}

/**
 * What takes turns with memory beyond the shares: reading a large answer, converting a large request, or reading an
 * answer that is shared. They are apart, so that no answer waits for as long as a converted call takes.
 */
type Turn = 'answers' | 'conversions' | 'shared answers'

/** A request that waits for memory. */
interface Waiting {
  readonly allocation: MemoryAllocation
  readonly bytes: number
  /** Set if it may exceed its share while no other of the same kind does. */
  readonly turn?: Turn
  readonly decide: (isTaken: boolean) => void
}

/**
 * Memory for everything that requests make the gateway hold, shared among clients and their keys: bodies,
 * uploads, fetched files, data read from the store, responses of upstreams, and live views. Small amounts
 * have a reserve. Memory is taken before anything is held, and returned only here.
 */
export class RequestMemory {
  readonly #shared: TwoLevelPool
  readonly #reserve: TwoLevelPool
  readonly #onGarbage: (bytes: number) => void
  /** The allocations that have exceeded their share, one of each kind. */
  readonly #exceeding = new Map<Turn, MemoryAllocation>()
  readonly #waiting = new Set<Waiting>()

  /**
   * `bodyLimit` returns the maximum size of a body in bytes. `nowMs` is a monotonic clock. `onGarbage` is
   * called with the bytes of `MemoryAllocation.garbage` when an allocation has been returned.
   */
  constructor(bodyLimit: () => number, nowMs: () => number, onGarbage: (bytes: number) => void = () => {}) {
    this.#onGarbage = onGarbage
    const max = (): number => Math.max(SHARED_BYTES, SHARED_BODIES * bodyLimit())
    this.#shared = new TwoLevelPool({ max, aloneShare: SHARED_MAX_PART, nowMs })
    this.#reserve = new TwoLevelPool({ max: () => RESERVE_BYTES, aloneShare: RESERVE_MAX_PART, nowMs })
  }

  /** Bytes held by all clients. */
  get held(): number {
    let { held } = this.#shared
    for (const { beyond } of this.#exceeding.values()) held += beyond
    return held + this.#reserve.held
  }

  /** Bytes held by a client. */
  usedBy(client: PoolClient): number {
    return this.#shared.usedBy(client) + this.#reserve.usedBy(client)
  }

  /**
   * Takes additional bytes, above 0; returns false and changes nothing if the client may not have them now.
   */
  take(allocation: MemoryAllocation, bytes: number): boolean {
    const { owner, reserved } = allocation
    if (allocation.bytes + bytes > SMALL_BYTES) {
      if (!this.#shared.take(owner, reserved + bytes)) return false
      // The amount is no longer small.
      if (reserved > 0) this.#reserve.give(owner, reserved)
      allocation.reserved = 0
      allocation.shared += reserved + bytes
    } else if (this.#shared.take(owner, bytes)) allocation.shared += bytes
    else if (this.#reserve.take(owner, bytes)) allocation.reserved += bytes
    else return false
    return true
  }

  /**
   * Takes additional bytes, waiting up to `ms` for them; resolves to false if they were not free in time.
   * `onWait` is called if there is a wait, with a function that ends it.
   */
  takeInTime(
    allocation: MemoryAllocation,
    bytes: number,
    ms: number,
    onWait: (giveUp: () => void) => void,
  ): boolean | Promise<boolean> {
    return this.take(allocation, bytes) || this.#wait({ allocation, bytes }, onWait, ms)
  }

  /**
   * Takes additional bytes for an allocation that cannot do without them, waiting as long as necessary, or for
   * up to `ms`; `onWait` as above. One allocation of each kind at a time may exceed its share, so that
   * allocations which each hold part of what they need are completed one after another.
   */
  takeInTurn(
    allocation: MemoryAllocation,
    bytes: number,
    turn: Turn,
    onWait: (giveUp: () => void) => void,
    ms?: number,
  ): boolean | Promise<boolean> {
    const waiting = { allocation, bytes, turn }
    return this.#takeFor(waiting) || this.#wait(waiting, onWait, ms)
  }

  /** Returns `bytes` of an allocation. */
  give(allocation: MemoryAllocation, bytes: number): void {
    const { owner } = allocation
    const beyond = Math.min(bytes, allocation.beyond)
    const reserved = Math.min(bytes - beyond, allocation.reserved)
    const shared = bytes - beyond - reserved
    if (reserved > 0) this.#reserve.give(owner, reserved)
    if (shared > 0) this.#shared.give(owner, shared)
    allocation.beyond -= beyond
    allocation.reserved -= reserved
    allocation.shared -= shared
    for (const [turn, { beyond: left }] of this.#exceeding) if (left === 0) this.#exceeding.delete(turn)
    if (bytes >= LARGE_BYTES) this.#onGarbage(bytes)
    if (this.#waiting.size > 0) this.#serveWaiting()
  }

  #wait(
    wanted: Omit<Waiting, 'decide'>,
    onWait: (giveUp: () => void) => void,
    ms?: number,
  ): Promise<boolean> {
    return new Promise((resolve) => {
      const decide = (isTaken: boolean): void => {
        clearTimeout(timer)
        this.#waiting.delete(waiting)
        resolve(isTaken)
      }
      const waiting: Waiting = { ...wanted, decide }
      const timer = ms === undefined ? undefined : setTimeout(() => decide(false), ms).unref()
      this.#waiting.add(waiting)
      onWait(() => decide(false))
    })
  }

  /**
   * Gives free memory to waiting requests: first to the clients that hold least, then in order of arrival.
   */
  #serveWaiting(): void {
    const usedBy = ({ allocation }: Waiting): number => this.usedBy(allocation.owner.client)
    const inTurn = [...this.#waiting].toSorted((a, b) => usedBy(a) - usedBy(b))
    for (const waiting of inTurn) if (this.#takeFor(waiting)) waiting.decide(true)
  }

  #takeFor({ allocation, bytes, turn }: Omit<Waiting, 'decide'>): boolean {
    if (this.take(allocation, bytes)) return true
    if (!turn || (this.#exceeding.get(turn) ?? allocation) !== allocation) return false
    this.#exceeding.set(turn, allocation)
    allocation.beyond += bytes
    return true
  }
}

/**
 * Bytes that are not counted, so that small responses, and streams of small events, take no memory from the
 * pool.
 */
const UNCOUNTED_BYTES = 64 * 1024

/**
 * Memory for the part of an upstream's response that a call holds: all of it, or an incomplete event. Bytes
 * that have arrived cannot be refused, because the upstream is paid for them; while memory is short, the call
 * stops reading.
 */
export class ResponseMemory {
  readonly #memory: RequestMemory
  readonly #allocation: MemoryAllocation
  #counted = 0
  #giveUp: (() => void) | undefined

  constructor(memory: RequestMemory, owner: PoolOwner) {
    this.#memory = memory
    this.#allocation = new MemoryAllocation(owner)
  }

  /** Whether more is held than memory was available for. */
  get isShort(): boolean {
    return this.#allocation.bytes < this.#counted
  }

  /** Sets the number of bytes held. */
  resize(bytes: number): void {
    const counted = Math.max(0, bytes - UNCOUNTED_BYTES)
    if (counted === this.#counted) return
    this.#counted = counted
    if (counted === 0) this.#giveUp?.()
    const missing = counted - this.#allocation.bytes
    if (missing > 0) this.#memory.take(this.#allocation, missing)
    else if (missing < 0) this.#memory.give(this.#allocation, -missing)
  }

  /** Whether any memory is taken or waited for. */
  get isUsed(): boolean {
    return this.#counted > 0
  }

  /** Waits while memory is short, or until nothing is held any more. */
  async whenEnough(): Promise<void> {
    let isWanted = true
    while (isWanted && this.isShort) {
      const missing = this.#counted - this.#allocation.bytes
      isWanted = await this.#memory.takeInTurn(
        this.#allocation,
        missing,
        'answers',
        (giveUp) => (this.#giveUp = giveUp),
      )
    }
    this.#giveUp = undefined
    // Fewer bytes may be held now than when the wait began.
    const surplus = this.#allocation.bytes - this.#counted
    if (surplus > 0) this.#memory.give(this.#allocation, surplus)
  }
}

/** Memory that a client holds for a longer time, in changing amounts. */
export class ResizableAllocation {
  readonly #memory: RequestMemory
  readonly #allocation: MemoryAllocation

  constructor(memory: RequestMemory, owner: PoolOwner) {
    this.#memory = memory
    this.#allocation = new MemoryAllocation(owner)
  }

  /** Takes bytes; returns false and takes nothing if the client may not have them now. */
  take(bytes: number): boolean {
    return bytes === 0 || this.#memory.take(this.#allocation, bytes)
  }

  /** Returns taken bytes, as far as they were not released already. */
  give(bytes: number): void {
    this.#memory.give(this.#allocation, Math.min(bytes, this.#allocation.bytes))
  }

  /** Returns everything. */
  release(): void {
    this.give(this.#allocation.bytes)
  }
}
