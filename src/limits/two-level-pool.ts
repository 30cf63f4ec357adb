import { type Client, type PoolSize, FairPool } from './fair-pool.ts'

/** Owner of a held amount: a user, or an address block if there is no user, and the key that was used. */
export interface Owner {
  readonly client: Client
  /** Id of the key; '' if there is none, as in sessions. */
  readonly key: Client
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
  readonly #keysOf = new Map<Client, FairPool>()
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
  heldBy(client: Client): number {
    return this.#clients.heldBy(client)
  }

  /**
   * Takes an amount above 0; returns false and takes nothing if it exceeds the share of the client or of its
   * key.
   */
  take({ client, key }: Owner, amount: number): boolean {
    const keys = this.#keysOf.get(client) ?? this.#keysOfNew(client)
    if (!keys.take(key, amount)) return false
    if (this.#clients.take(client, amount)) return true
    keys.give(key, amount)
    return false
  }

  /** Returns a taken amount, or a part of it. */
  give({ client, key }: Owner, amount: number): void {
    this.#keysOf.get(client)?.give(key, amount)
    this.#clients.give(client, amount)
  }

  #keysOfNew(client: Client): FairPool {
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
