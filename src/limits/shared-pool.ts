/** Holder of a part of a pool: the id of an API key's token, or a block of addresses. */
export type Client = number | string

/** How a pool is divided. */
export interface PoolSize {
  /** How much there is; it may change. */
  readonly max: () => number
  /** The part of it, 0 to 1, that a client may hold while no other has asked for any lately. */
  readonly aloneShare: number
  /** A clock that never goes back, in milliseconds. */
  readonly nowMs: () => number
}

/** How long a client that asked for some counts as one that wants some. */
const LATELY_MS = 60_000

/**
 * A bounded amount (of bytes, of places) that clients share. While several ask for it, none may hold more
 * than is left free: one client has half of it at most, two have a third each. A client that holds nothing
 * gets its first as long as any is left.
 */
export class SharedPool {
  readonly #size: PoolSize
  readonly #shares = new Map<Client, number>()
  #held = 0
  /** The client that asked last, and when; and when any other than this one did. */
  #last: Client | undefined
  #lastMs = Number.NEGATIVE_INFINITY
  #otherMs = Number.NEGATIVE_INFINITY

  constructor(size: PoolSize) {
    this.#size = size
  }

  /** The sum that all clients hold. */
  get held(): number {
    return this.#held
  }

  /** Clients that hold any. */
  get clients(): number {
    return this.#shares.size
  }

  /** Whether nothing is left. */
  get isFull(): boolean {
    return this.#held >= this.#size.max()
  }

  /** The amount that one of them holds. */
  heldBy(client: Client): number {
    return this.#shares.get(client) ?? 0
  }

  /** Takes an amount above 0; false, with nothing taken, where that is more than the client may have now. */
  take(client: Client, amount: number): boolean {
    const isAlone = this.#noteAsking(client)
    const most = this.#size.max()
    const free = most - this.#held - amount
    if (free < 0) return false
    const own = this.heldBy(client)
    if (own > 0 && own + amount > (isAlone ? Math.ceil(most * this.#size.aloneShare) : free)) return false
    this.#held += amount
    this.#shares.set(client, own + amount)
    return true
  }

  /** Gives back what was taken, or a part of it. */
  give(client: Client, amount: number): void {
    const left = this.heldBy(client) - amount
    this.#held -= amount
    if (left > 0) this.#shares.set(client, left)
    else this.#shares.delete(client)
  }

  /** Whether no other client has asked lately. */
  #noteAsking(client: Client): boolean {
    const nowMs = this.#size.nowMs()
    if (client !== this.#last) {
      this.#otherMs = this.#lastMs
      this.#last = client
    }
    this.#lastMs = nowMs
    return nowMs - this.#otherMs > LATELY_MS
  }
}
