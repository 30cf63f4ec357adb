import { type PoolClient, type PoolShareOwner, TwoLevelPool } from './fair-pool.ts'

const MIB = 1024 * 1024
/** Minimum bytes of memory that requests of any size share. */
const SHARED_BYTES = 192 * MIB
/** The shared memory is also at least as large as this number of request bodies of maximum size. */
const SHARED_BODIES = 4
/** Part of the shared memory that one client may hold if no other client has called recently. */
const SHARED_MAX_PART = 7 / 8
/** Additional bytes of memory that only small amounts may use. */
const RESERVE_BYTES = 64 * MIB
/** Part of the reserve (`RESERVE_BYTES`) that one client may hold if no other client has called recently. */
const RESERVE_MAX_PART = 1 / 2
/** Maximum bytes of an amount that counts as small. */
const SMALL_BYTES = 256 * 1024
/**
 * Minimum bytes of a returned amount for which `onGarbage` is called, because it becomes garbage on the heap.
 */
const LARGE_BYTES = 4 * MIB

/** Bytes of memory that one request holds for one purpose. Only `RequestMemory` changes them. */
export class MemoryAllocation {
  readonly owner: PoolShareOwner
  shared = 0
  reserved = 0
  /**
   * Bytes in excess of the owner's share. For each kind of work, only one allocation at a time may have any.
   */
  beyond = 0

  constructor(owner: PoolShareOwner) {
    this.owner = owner
  }

  get bytes(): number {
    return this.shared + this.reserved + this.beyond
  }
}

/**
 * Kinds of work that may exceed a client's share of memory, one allocation at a time: reading a large answer,
 * converting a large request, reading an answer that equal calls share, and reading a large content of the content log. They are separate, because a
 * conversion holds memory during the whole call, and answers must not wait so long.
 */
type Turn = 'answers' | 'conversions' | 'shared answers' | 'contents'

/** A request that waits for memory to become free. */
interface Waiting {
  readonly allocation: MemoryAllocation
  readonly bytes: number
  /** Set if the allocation may exceed its share when no other one of the same kind does so. */
  readonly turn?: Turn
  readonly decide: (isTaken: boolean) => void
}

/**
 * Limits the memory that requests make the gateway hold: bodies, uploads, fetched files, data read from the
 * database, upstream responses, and live views. Clients and their keys share it fairly, and there is a
 * reserve for small amounts. Code takes memory from this object before it stores anything, and returns it
 * afterwards.
 */
export class RequestMemory {
  readonly #shared: TwoLevelPool
  readonly #reserve: TwoLevelPool
  readonly #onGarbage: (bytes: number) => void
  readonly #onPassed: (bytes: number) => void
  /** The allocations that exceed their share, at most one of each kind. */
  readonly #exceeding = new Map<Turn, MemoryAllocation>()
  readonly #waiting = new Set<Waiting>()

  /**
   * `bodyLimit` returns the maximum bytes of a request body. `nowMs` returns milliseconds of a monotonic
   * clock. `onGarbage` is called with the number of bytes when a large amount is returned,
   * `onPassed` with bytes that pass through.
   */
  constructor(
    bodyLimit: () => number,
    nowMs: () => number,
    onGarbage: (bytes: number) => void = () => {},
    onPassed: (bytes: number) => void = () => {},
  ) {
    this.#onGarbage = onGarbage
    this.#onPassed = onPassed
    const max = (): number => Math.max(SHARED_BYTES, SHARED_BODIES * bodyLimit())
    this.#shared = new TwoLevelPool({ max, aloneShare: SHARED_MAX_PART, nowMs })
    this.#reserve = new TwoLevelPool({ max: () => RESERVE_BYTES, aloneShare: RESERVE_MAX_PART, nowMs })
  }

  /** Bytes that all clients together hold. */
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
   * Takes additional bytes (more than 0) for an allocation. Returns false and changes nothing if the client
   * may not have them now.
   */
  take(allocation: MemoryAllocation, bytes: number): boolean {
    const { owner, reserved } = allocation
    if (allocation.bytes + bytes > SMALL_BYTES) {
      if (!this.#shared.take(owner, reserved + bytes)) return false
      // The amount is no longer small, so it must not occupy the reserve.
      if (reserved > 0) this.#reserve.give(owner, reserved)
      allocation.reserved = 0
      allocation.shared += reserved + bytes
    } else if (this.#shared.take(owner, bytes)) allocation.shared += bytes
    else if (this.#reserve.take(owner, bytes)) allocation.reserved += bytes
    else return false
    return true
  }

  /**
   * Takes additional bytes, and waits for up to `ms` milliseconds until they are free. Resolves to false if
   * they are not. If there is a wait, `onWait` is called with a function that ends it.
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
   * Takes additional bytes for work that cannot go on without them. Waits as long as necessary, or for up to
   * `ms` milliseconds; `onWait` is called with a function that ends the wait. One allocation of each kind at
   * a time may exceed its share: otherwise, allocations that each hold part of what they need could wait for
   * each other forever.
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

  /** Notes bytes that pass through and are not kept: their buffers are soon garbage. */
  pass(bytes: number): void {
    this.#onPassed(bytes)
  }

  /** Returns some of an allocation's bytes. */
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

  /** Gives free memory to waiting requests: first to clients that hold least, then in order of arrival. */
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
 * The first bytes of each response, which are not counted, so that small responses and streams of small
 * events need no memory from the pool.
 */
const UNCOUNTED_BYTES = 64 * 1024

/**
 * Memory for the part of an upstream's response that a call holds: the whole response, or an incomplete
 * event. Bytes that have arrived cannot be refused, because the upstream is paid for them; if there is too
 * little memory, the call stops reading until there is more.
 */
export class ResponseMemory {
  readonly #memory: RequestMemory
  readonly #allocation: MemoryAllocation
  #counted = 0
  #giveUp: (() => void) | undefined
  /** The wait for memory, which all callers of `whenEnough` share: an allocation waits in one place of the queue. */
  #wait: Promise<void> | undefined

  constructor(memory: RequestMemory, owner: PoolShareOwner) {
    this.#memory = memory
    this.#allocation = new MemoryAllocation(owner)
  }

  /** Whether the call holds more bytes than it could take memory for. */
  get isShort(): boolean {
    return this.#allocation.bytes < this.#counted
  }

  /** States how many bytes the call holds now, and takes or returns memory for the difference. */
  resize(bytes: number): void {
    const counted = Math.max(0, bytes - UNCOUNTED_BYTES)
    if (counted === this.#counted) return
    this.#counted = counted
    if (counted === 0) this.#giveUp?.()
    const missing = counted - this.#allocation.bytes
    if (missing > 0) this.#memory.take(this.#allocation, missing)
    else if (missing < 0) this.#memory.give(this.#allocation, -missing)
  }

  /** Whether the call holds so many bytes that memory must be taken for them. */
  get isUsed(): boolean {
    return this.#counted > 0
  }

  /** Waits until memory is taken for all bytes that the call holds, or until it holds none any more. */
  whenEnough(): Promise<void> {
    return this.isShort ? (this.#wait ??= this.#takeEnough()) : Promise.resolve()
  }

  async #takeEnough(): Promise<void> {
    while (this.isShort) {
      const missing = this.#counted - this.#allocation.bytes
      await this.#memory.takeInTurn(this.#allocation, missing, 'answers', (giveUp) => (this.#giveUp = giveUp))
    }
    this.#wait = undefined
    this.#giveUp = undefined
    // Fewer bytes may be needed now than when the wait began.
    const surplus = this.#allocation.bytes - this.#counted
    if (surplus > 0) this.#memory.give(this.#allocation, surplus)
  }
}

/** Memory that a client holds for a longer time, and whose size changes. */
export class ResizableAllocation {
  readonly #memory: RequestMemory
  readonly #allocation: MemoryAllocation

  constructor(memory: RequestMemory, owner: PoolShareOwner) {
    this.#memory = memory
    this.#allocation = new MemoryAllocation(owner)
  }

  /** Takes bytes; returns false and takes nothing if the client may not have them now. */
  take(bytes: number): boolean {
    return bytes === 0 || this.#memory.take(this.#allocation, bytes)
  }

  /** Returns bytes that were taken, unless `release` has already returned them. */
  give(bytes: number): void {
    this.#memory.give(this.#allocation, Math.min(bytes, this.#allocation.bytes))
  }

  /** Returns all bytes that were taken, so that others can take them. */
  release(): void {
    this.give(this.#allocation.bytes)
  }
}
