import { type Client, SharedPool } from '../limits/shared-pool.ts'

const MIB = 1024 * 1024
/** Bytes for bodies of any size, at least. */
const SHARED_BYTES = 192 * MIB
/** Bodies of the largest allowed size that there is memory for, at least. */
const SHARED_BODIES = 4
/** Part of that memory for one client while no other has come lately. */
const SHARED_MAX_PART = 7 / 8
/** Further bytes, for small bodies alone. */
const RESERVE_BYTES = 64 * MIB
/** Part of the reserve for one client while no other has come lately. */
const RESERVE_MAX_PART = 1 / 2
/** Largest size of a small body. */
const SMALL_BYTES = 256 * 1024

/** Bytes of memory that one body holds; only `BodyMemory` changes them. */
export class BodyAllocation {
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

/** Memory for request bodies, shared among clients; small bodies have a reserve. */
export class BodyMemory {
  readonly #shared: SharedPool
  readonly #reserve: SharedPool

  /** `bodyLimit`: bytes of the largest body. `nowMs`: a clock that never goes back. */
  constructor(bodyLimit: () => number, nowMs: () => number) {
    const max = (): number => Math.max(SHARED_BYTES, SHARED_BODIES * bodyLimit())
    this.#shared = new SharedPool({ max, aloneShare: SHARED_MAX_PART, nowMs })
    this.#reserve = new SharedPool({ max: () => RESERVE_BYTES, aloneShare: RESERVE_MAX_PART, nowMs })
  }

  /** Bytes that all bodies hold. */
  get held(): number {
    return this.#shared.held + this.#reserve.held
  }

  /** Bytes that the bodies of a client hold. */
  heldBy(client: Client): number {
    return this.#shared.heldBy(client) + this.#reserve.heldBy(client)
  }

  /** Takes more bytes, above 0; false, and nothing changed, where the client may not have them now. */
  take(allocation: BodyAllocation, bytes: number): boolean {
    const { client, reserved } = allocation
    if (allocation.bytes + bytes > SMALL_BYTES) {
      if (!this.#shared.take(client, reserved + bytes)) return false
      // The body is small no longer.
      if (reserved > 0) this.#reserve.give(client, reserved)
      allocation.reserved = 0
      allocation.shared += reserved + bytes
    } else if (this.#shared.take(client, bytes)) allocation.shared += bytes
    else if (this.#reserve.take(client, bytes)) allocation.reserved += bytes
    else return false
    return true
  }

  /** Gives back `bytes` of an allocation. */
  give(allocation: BodyAllocation, bytes: number): void {
    const { client } = allocation
    const reserved = Math.min(bytes, allocation.reserved)
    if (reserved > 0) this.#reserve.give(client, reserved)
    if (bytes > reserved) this.#shared.give(client, bytes - reserved)
    allocation.reserved -= reserved
    allocation.shared -= bytes - reserved
  }
}
