/** Client that holds a part of a pool, or a key of a client. */
export type Client = number | string

/** Size of a pool and its division. */
export interface PoolSize {
  /** Total amount, which may change. */
  readonly max: () => number
  /** Share, from 0 to 1, that a client may hold while no other has asked recently. */
  readonly aloneShare: number
  /** Monotonic clock, in milliseconds. */
  readonly nowMs: () => number
}

/** Time for which a client counts as active after a request. */
const RECENT_MS = 60_000

/**
 * Bounded amount, such as bytes or slots, that clients share. While several are active, none may hold more
 * than stays free: one client gets half at most, two get a third each. A client that holds nothing gets its
 * first amount as long as any is left.
 */
export class FairPool {
  readonly #size: PoolSize
  readonly #shares = new Map<Client, number>()
  #held = 0
  /** The last client that asked and the time of that, and the last time at which any other client asked. */
  #lastClient: Client | undefined
  #lastMs = Number.NEGATIVE_INFINITY
  #otherMs = Number.NEGATIVE_INFINITY

  constructor(size: PoolSize) {
    this.#size = size
  }

  /** Sum of all held amounts. */
  get held(): number {
    return this.#held
  }

  /** Number of clients that hold any. */
  get clients(): number {
    return this.#shares.size
  }

  /** Whether nothing is left. */
  get isFull(): boolean {
    return this.#held >= this.#size.max()
  }

  /** Amount that a client holds. */
  heldBy(client: Client): number {
    return this.#shares.get(client) ?? 0
  }

  /** Maximum amount that a client may hold now. */
  maxOf(client: Client): number {
    const max = this.#size.max()
    const own = this.heldBy(client)
    const reachable = max - this.#held + own
    if (own === 0) return reachable
    const otherMs = client === this.#lastClient ? this.#otherMs : this.#lastMs
    const isAlone = this.#size.nowMs() - otherMs > RECENT_MS
    return isAlone ? Math.min(reachable, Math.ceil(max * this.#size.aloneShare)) : Math.floor(reachable / 2)
  }

  /** Whether nothing is held, and no client has asked recently. */
  get isIdle(): boolean {
    return this.#held === 0 && this.#size.nowMs() - this.#lastMs > RECENT_MS
  }

  /** Takes an amount above 0; returns false and takes nothing if that exceeds the client's share. */
  take(client: Client, amount: number): boolean {
    this.#recordRequest(client)
    const own = this.heldBy(client)
    if (own + amount > this.maxOf(client)) return false
    this.#held += amount
    this.#shares.set(client, own + amount)
    return true
  }

  /** Returns a taken amount, or a part of it. */
  give(client: Client, amount: number): void {
    const left = this.heldBy(client) - amount
    this.#held -= amount
    if (left > 0) this.#shares.set(client, left)
    else this.#shares.delete(client)
  }

  #recordRequest(client: Client): void {
    if (client !== this.#lastClient) {
      this.#otherMs = this.#lastMs
      this.#lastClient = client
    }
    this.#lastMs = this.#size.nowMs()
  }
}
