/** Client that holds a part of a pool, or a key of a client. */
export type PoolClient = number | string

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
  readonly #shares = new Map<PoolClient, number>()
  #held = 0
  /** The last client that asked and the time of that, and the last time at which any other client asked. */
  #lastClient: PoolClient | undefined
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
  usedBy(client: PoolClient): number {
    return this.#shares.get(client) ?? 0
  }

  /** Maximum amount that a client may hold now. */
  maxOf(client: PoolClient): number {
    const max = this.#size.max()
    const own = this.usedBy(client)
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
  take(client: PoolClient, amount: number): boolean {
    this.#recordRequest(client)
    const own = this.usedBy(client)
    if (own + amount > this.maxOf(client)) return false
    this.#held += amount
    this.#shares.set(client, own + amount)
    return true
  }

  /** Returns a taken amount, or a part of it. */
  give(client: PoolClient, amount: number): void {
    const left = this.usedBy(client) - amount
    this.#held -= amount
    if (left > 0) this.#shares.set(client, left)
    else this.#shares.delete(client)
  }

  #recordRequest(client: PoolClient): void {
    if (client !== this.#lastClient) {
      this.#otherMs = this.#lastMs
      this.#lastClient = client
    }
    this.#lastMs = this.#size.nowMs()
  }
}

/** Owner of a held amount: a user, or an address block if there is no user, and the key that was used. */
export interface PoolOwner {
  readonly client: PoolClient
  /** Id of the key; '' if there is none, as in sessions. */
  readonly key: PoolClient
}

/** Interval at which the keys of clients that hold nothing are removed. */
const SWEEP_MS = 60_000

/**
 * Pool that clients share, in which the keys of each client share the client's part by the same rule; a key
 * may have all of it while no other key has asked recently.
 */
export class TwoLevelPool {
  readonly #size: PoolSize
  readonly #clients: FairPool
  readonly #keysOf = new Map<PoolClient, FairPool>()
  #sweptMs: number

  constructor(size: PoolSize) {
    this.#size = size
    this.#clients = new FairPool(size)
    this.#sweptMs = size.nowMs()
  }

  /** Sum of all held amounts. */
  get held(): number {
    return this.#clients.held
  }

  /** Amount that a client holds with all its keys. */
  usedBy(client: PoolClient): number {
    return this.#clients.usedBy(client)
  }

  /**
   * Takes an amount above 0; returns false and takes nothing if it exceeds the share of the client or of its
   * key.
   */
  take({ client, key }: PoolOwner, amount: number): boolean {
    const keys = this.#keysOf.get(client) ?? this.#keysOfNew(client)
    if (!keys.take(key, amount)) return false
    if (this.#clients.take(client, amount)) return true
    keys.give(key, amount)
    return false
  }

  /** Returns a taken amount, or a part of it. */
  give({ client, key }: PoolOwner, amount: number): void {
    this.#keysOf.get(client)?.give(key, amount)
    this.#clients.give(client, amount)
  }

  #keysOfNew(client: PoolClient): FairPool {
    const nowMs = this.#size.nowMs()
    if (nowMs - this.#sweptMs >= SWEEP_MS) {
      this.#sweptMs = nowMs
      for (const [one, keys] of this.#keysOf) if (keys.isIdle) this.#keysOf.delete(one)
    }
    const max = (): number => this.#clients.maxOf(client)
    const keys = new FairPool({ max, aloneShare: 1, nowMs: this.#size.nowMs })
    this.#keysOf.set(client, keys)
    return keys
  }
}
