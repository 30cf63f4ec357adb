import type { Client } from './shared-pool.ts'
import { type Owner, TwoLevelPool } from './two-level-pool.ts'

const MIB = 1024 * 1024
/** Bytes for amounts of any size, at least. */
const SHARED_BYTES = 192 * MIB
/** Bodies of the largest allowed size that there is memory for, at least. */
const SHARED_BODIES = 4
/** Part of that memory for one client while no other has come lately. */
const SHARED_MAX_PART = 7 / 8
/** Further bytes, for small amounts alone. */
const RESERVE_BYTES = 64 * MIB
/** Part of the reserve for one client while no other has come lately. */
const RESERVE_MAX_PART = 1 / 2
/** Largest size of a small amount. */
const SMALL_BYTES = 256 * 1024

/** Bytes of memory that one request holds for one purpose; only `RequestMemory` changes them. */
export class MemoryAllocation {
  readonly owner: Owner
  shared = 0
  reserved = 0
  /** Bytes beyond the share of the owner. */
  beyond = 0

  constructor(owner: Owner) {
    this.owner = owner
  }

  get bytes(): number {
    return this.shared + this.reserved + this.beyond
  }
}

/** A request that waits for memory. */
interface Waiting {
  readonly allocation: MemoryAllocation
  readonly bytes: number
  /** Whether it may go beyond its share, if no other does. */
  readonly mayExceed: boolean
  readonly decide: (isTaken: boolean) => void
}

/**
 * Memory for what requests make the gateway hold, shared among clients and their keys: bodies, uploads, files
 * that are fetched, what is read from the store, answers of upstreams, and live views. Small amounts have a
 * reserve. It is taken before anything is held, and given back here alone.
 */
export class RequestMemory {
  readonly #shared: TwoLevelPool
  readonly #reserve: TwoLevelPool
  /** The only allocation that has gone beyond its share. */
  #exceeding: MemoryAllocation | undefined
  readonly #waiting = new Set<Waiting>()

  /** `bodyLimit`: bytes of the largest body. `nowMs`: a clock that never goes back. */
  constructor(bodyLimit: () => number, nowMs: () => number) {
    const max = (): number => Math.max(SHARED_BYTES, SHARED_BODIES * bodyLimit())
    this.#shared = new TwoLevelPool({ max, aloneShare: SHARED_MAX_PART, nowMs })
    this.#reserve = new TwoLevelPool({ max: () => RESERVE_BYTES, aloneShare: RESERVE_MAX_PART, nowMs })
  }

  /** Bytes that all clients hold. */
  get held(): number {
    return this.#shared.held + this.#reserve.held + (this.#exceeding?.beyond ?? 0)
  }

  /** Bytes that a client holds. */
  heldBy(client: Client): number {
    return this.#shared.heldBy(client) + this.#reserve.heldBy(client)
  }

  /** Takes more bytes, above 0; false, and nothing changed, where the client may not have them now. */
  take(allocation: MemoryAllocation, bytes: number): boolean {
    const { owner, reserved } = allocation
    if (allocation.bytes + bytes > SMALL_BYTES) {
      if (!this.#shared.take(owner, reserved + bytes)) return false
      // The amount is small no longer.
      if (reserved > 0) this.#reserve.give(owner, reserved)
      allocation.reserved = 0
      allocation.shared += reserved + bytes
    } else if (this.#shared.take(owner, bytes)) allocation.shared += bytes
    else if (this.#reserve.take(owner, bytes)) allocation.reserved += bytes
    else return false
    return true
  }

  /**
   * Takes more bytes, and waits for them for `ms` at most; false where they were not free in time. `onWait`
   * is called if there is a wait, with a function that ends it.
   */
  takeInTime(
    allocation: MemoryAllocation,
    bytes: number,
    ms: number,
    onWait: (giveUp: () => void) => void,
  ): boolean | Promise<boolean> {
    return this.take(allocation, bytes) || this.#wait({ allocation, bytes, mayExceed: false }, onWait, ms)
  }

  /**
   * Takes more bytes for an allocation that cannot do without them, and waits for them as long as it takes;
   * `onWait` as above. One allocation at a time may go beyond its share: so of those that each hold a part of
   * what they need, one after another gets the rest.
   */
  takeInTurn(
    allocation: MemoryAllocation,
    bytes: number,
    onWait: (giveUp: () => void) => void,
  ): boolean | Promise<boolean> {
    const waiting = { allocation, bytes, mayExceed: true }
    return this.#takeFor(waiting) || this.#wait(waiting, onWait)
  }

  /** Gives back `bytes` of an allocation. */
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
    if (this.#exceeding?.beyond === 0) this.#exceeding = undefined
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

  /** Gives what is free to those that wait: first to clients that hold least, then in order of arrival. */
  #serveWaiting(): void {
    const heldBy = ({ allocation }: Waiting): number => this.heldBy(allocation.owner.client)
    const inTurn = [...this.#waiting].toSorted((a, b) => heldBy(a) - heldBy(b))
    for (const waiting of inTurn) if (this.#takeFor(waiting)) waiting.decide(true)
  }

  #takeFor({ allocation, bytes, mayExceed }: Omit<Waiting, 'decide'>): boolean {
    if (this.take(allocation, bytes)) return true
    if (!mayExceed || (this.#exceeding ?? allocation) !== allocation) return false
    this.#exceeding = allocation
    allocation.beyond += bytes
    return true
  }
}
