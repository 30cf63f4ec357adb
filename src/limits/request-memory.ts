import { type Client, SharedPool } from './shared-pool.ts'

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
  readonly client: Client
  shared = 0
  reserved = 0

  constructor(client: Client) {
    this.client = client
  }

  get bytes(): number {
    return this.shared + this.reserved
  }
}

/** A request that waits for memory. */
interface Waiting {
  readonly allocation: MemoryAllocation
  readonly bytes: number
  readonly decide: (isTaken: boolean) => void
}

/**
 * Memory for what requests make the gateway hold, shared among clients: bodies, uploads, what is read from
 * the store or comes from an upstream for them. Small amounts have a reserve. It is taken before anything is
 * held, and given back here alone.
 */
export class RequestMemory {
  readonly #shared: SharedPool
  readonly #reserve: SharedPool
  readonly #waiting = new Set<Waiting>()

  /** `bodyLimit`: bytes of the largest body. `nowMs`: a clock that never goes back. */
  constructor(bodyLimit: () => number, nowMs: () => number) {
    const max = (): number => Math.max(SHARED_BYTES, SHARED_BODIES * bodyLimit())
    this.#shared = new SharedPool({ max, aloneShare: SHARED_MAX_PART, nowMs })
    this.#reserve = new SharedPool({ max: () => RESERVE_BYTES, aloneShare: RESERVE_MAX_PART, nowMs })
  }

  /** Bytes that all clients hold. */
  get held(): number {
    return this.#shared.held + this.#reserve.held
  }

  /** Bytes that a client holds. */
  heldBy(client: Client): number {
    return this.#shared.heldBy(client) + this.#reserve.heldBy(client)
  }

  /** Takes more bytes, above 0; false, and nothing changed, where the client may not have them now. */
  take(allocation: MemoryAllocation, bytes: number): boolean {
    const { client, reserved } = allocation
    if (allocation.bytes + bytes > SMALL_BYTES) {
      if (!this.#shared.take(client, reserved + bytes)) return false
      // The amount is small no longer.
      if (reserved > 0) this.#reserve.give(client, reserved)
      allocation.reserved = 0
      allocation.shared += reserved + bytes
    } else if (this.#shared.take(client, bytes)) allocation.shared += bytes
    else if (this.#reserve.take(client, bytes)) allocation.reserved += bytes
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
    if (this.take(allocation, bytes)) return true
    return new Promise((resolve) => {
      const decide = (isTaken: boolean): void => {
        clearTimeout(timer)
        this.#waiting.delete(waiting)
        resolve(isTaken)
      }
      const waiting: Waiting = { allocation, bytes, decide }
      const timer = setTimeout(() => decide(false), ms).unref()
      this.#waiting.add(waiting)
      onWait(() => decide(false))
    })
  }

  /** Gives back `bytes` of an allocation. */
  give(allocation: MemoryAllocation, bytes: number): void {
    const { client } = allocation
    const reserved = Math.min(bytes, allocation.reserved)
    if (reserved > 0) this.#reserve.give(client, reserved)
    if (bytes > reserved) this.#shared.give(client, bytes - reserved)
    allocation.reserved -= reserved
    allocation.shared -= bytes - reserved
    if (this.#waiting.size > 0) this.#serveWaiting()
  }

  /** Gives what is free to those that wait: first to clients that hold least, then in order of arrival. */
  #serveWaiting(): void {
    const inTurn = [...this.#waiting].toSorted(
      (a, b) => this.heldBy(a.allocation.client) - this.heldBy(b.allocation.client),
    )
    for (const { allocation, bytes, decide } of inTurn) if (this.take(allocation, bytes)) decide(true)
  }
}
