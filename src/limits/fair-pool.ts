/** A client that holds a part of a pool: a user's id, an address block, or a key's id. */
export type PoolClient = number | string

/** The size of a pool, and how it is divided. */
export interface PoolSize {
  /** The total amount that all clients together may hold. It may change at any time. `nowMs` is the time of the clock. */
  readonly max: (nowMs?: number) => number
  /** Share from 0 to 1 that a client may hold if no other client has wanted an amount recently. */
  readonly aloneShare: number
  /** Monotonic clock, in milliseconds. */
  readonly nowMs: () => number
}

/** Milliseconds for which a client counts as active after a request. */
const RECENT_MS = 60_000

/**
 * A limited amount, such as bytes or slots, that clients share. While several clients are active, none may
 * hold more than what stays free: a single one gets at most a half, two get a third each. A client that holds
 * nothing gets its first amount as long as any is left.
 */
export class FairPool {
  readonly #size: PoolSize
  readonly #shares = new Map<PoolClient, number>()
  #held = 0
  /**
   * The last client that wanted an amount, at `#lastMs`. Any other client last wanted one at `#otherMs`. Both
   * are in milliseconds.
   */
  #lastClient: PoolClient | undefined
  #lastMs = Number.NEGATIVE_INFINITY
  #otherMs = Number.NEGATIVE_INFINITY

  constructor(size: PoolSize) {
    this.#size = size
  }

  /** Total of all amounts that clients hold. */
  get held(): number {
    return this.#held
  }

  /** Number of clients that hold something. */
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
  maxOf(client: PoolClient, nowMs = this.#size.nowMs()): number {
    const max = this.#size.max(nowMs)
    const own = this.usedBy(client)
    const reachable = max - this.#held + own
    if (own === 0) return reachable
    const otherMs = client === this.#lastClient ? this.#otherMs : this.#lastMs
    const isAlone = nowMs - otherMs > RECENT_MS
    return isAlone ? Math.min(reachable, Math.ceil(max * this.#size.aloneShare)) : Math.floor(reachable / 2)
  }

  /** Whether no client holds an amount or has recently wanted one. */
  get isIdle(): boolean {
    return this.#held === 0 && this.#size.nowMs() - this.#lastMs > RECENT_MS
  }

  /**
   * Takes an amount above 0 for a client. Returns false and takes nothing if the client would exceed its
   * share.
   */
  take(client: PoolClient, amount: number, nowMs = this.#size.nowMs()): boolean {
    this.#recordRequest(client, nowMs)
    const own = this.usedBy(client)
    if (own + amount > this.maxOf(client, nowMs)) return false
    this.#held += amount
    this.#shares.set(client, own + amount)
    return true
  }

  /** Returns an amount that was taken, or a part of it. */
  give(client: PoolClient, amount: number): void {
    const left = this.usedBy(client) - amount
    this.#held -= amount
    if (left > 0) this.#shares.set(client, left)
    else this.#shares.delete(client)
  }

  #recordRequest(client: PoolClient, nowMs: number): void {
    if (client !== this.#lastClient) {
      this.#otherMs = this.#lastMs
      this.#lastClient = client
    }
    this.#lastMs = nowMs
  }
}

/** Who holds an amount: a user or, without a user, an address block; and the API key that was used. */
export interface PoolShareOwner {
  readonly client: PoolClient
  /** Id of the API key; empty if there is none, as in sessions of the console. */
  readonly key: PoolClient
}

/** Milliseconds between removals of entries for clients that hold nothing. */
const SWEEP_MS = 60_000

/**
 * A pool that clients share, and in which each client's keys share the client's part by the same rule. A key
 * may have all of that part if no other key of the client has wanted an amount recently.
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

  /** Total of all amounts that clients hold. */
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
  take({ client, key }: PoolShareOwner, amount: number): boolean {
    const nowMs = this.#size.nowMs()
    const keys = this.#keysOf.get(client) ?? this.#keysOfNew(client, nowMs)
    if (!keys.take(key, amount, nowMs)) return false
    if (this.#clients.take(client, amount, nowMs)) return true
    keys.give(key, amount)
    return false
  }

  /** Returns an amount that was taken, or a part of it. */
  give({ client, key }: PoolShareOwner, amount: number): void {
    this.#keysOf.get(client)?.give(key, amount)
    this.#clients.give(client, amount)
  }

  #keysOfNew(client: PoolClient, nowMs: number): FairPool {
    if (nowMs - this.#sweptMs >= SWEEP_MS) {
      this.#sweptMs = nowMs
      for (const [one, keys] of this.#keysOf) if (keys.isIdle) this.#keysOf.delete(one)
    }
    const max = (at?: number): number => this.#clients.maxOf(client, at)
    const keys = new FairPool({ max, aloneShare: 1, nowMs: this.#size.nowMs })
    this.#keysOf.set(client, keys)
    return keys
  }
}
