import { type Client, SharedPool } from '../limits/shared-pool.ts'

const MIB = 1024 * 1024
/** Bytes for bodies of any size; or so many times the largest body that is allowed, if that is more. */
const SHARED_BYTES = 192 * MIB
const SHARED_BODIES = 4
/** The part of that which one client may have while no other has come lately. */
const SHARED_MAX_PART = 7 / 8
/** Bytes beside these that are for small bodies alone, up to this size each. */
const RESERVE_BYTES = 64 * MIB
const RESERVE_MAX_PART = 1 / 2
const SMALL_BYTES = 256 * 1024

/** Bytes of the room that one body holds. */
export class BodyAllocation {
  readonly client: Client
  /** Changed by the room alone. */
  shared = 0
  reserved = 0

  constructor(client: Client) {
    this.client = client
  }

  get bytes(): number {
    return this.shared + this.reserved
  }
}

/** The memory that request bodies may take, shared among clients; small bodies have a reserve. */
export class BodyMemory {
  readonly #shared: SharedPool
  readonly #reserve: SharedPool

  /** `bodyLimit`: bytes of the largest body. `nowMs`: a clock that never goes back. */
  constructor(bodyLimit: () => number, nowMs: () => number) {
    const most = (): number => Math.max(SHARED_BYTES, SHARED_BODIES * bodyLimit())
    this.#shared = new SharedPool({ max: most, aloneShare: SHARED_MAX_PART, nowMs })
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

  /** Takes more bytes, above 0; false, with nothing changed, where its client may not have them now. */
  take(holding: BodyAllocation, bytes: number): boolean {
    const { client, reserved } = holding
    if (holding.bytes + bytes > SMALL_BYTES) {
      if (!this.#shared.take(client, reserved + bytes)) return false
      // It is small no longer.
      if (reserved > 0) this.#reserve.give(client, reserved)
      holding.reserved = 0
      holding.shared += reserved + bytes
    } else if (this.#shared.take(client, bytes)) holding.shared += bytes
    else if (this.#reserve.take(client, bytes)) holding.reserved += bytes
    else return false
    return true
  }

  /** Gives back so many of its bytes. */
  give(holding: BodyAllocation, bytes: number): void {
    const { client } = holding
    const reserved = Math.min(bytes, holding.reserved)
    if (reserved > 0) this.#reserve.give(client, reserved)
    if (bytes > reserved) this.#shared.give(client, bytes - reserved)
    holding.reserved -= reserved
    holding.shared -= bytes - reserved
  }
}
