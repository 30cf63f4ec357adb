import type { Channel } from '../../domain/channel.ts'
import { type Destination, isConfigured } from './destination.ts'
import { Distrust } from './distrusted-upstreams.ts'
import { Pool, type PoolOwner } from './pool.ts'

/** How often time-outs are looked at: none is noticed later than that. */
const SWEEP_MS = 100
/** Connections that are kept for later calls, of all pools together. */
const MOST_FREE = 1_024

/** What connections ask of the gateway, and tell it. */
export interface ConnectionsParts {
  /** The channels in force; another list whenever they have changed. */
  readonly channels: () => readonly Channel[]
  /** A channel's upstream sent bytes that nobody asked for; `isNews` if it was trusted until now. */
  readonly onUnasked: (channel: string, isNews: boolean) => void
}

/**
 * The connections to all upstreams. There is a pool for each destination while it has a connection or a call.
 */
export class Connections implements PoolOwner {
  readonly #parts: ConnectionsParts
  readonly #pools = new Map<string, Pool>()
  readonly #distrust = new Distrust()
  #channels: readonly Channel[] | undefined
  #free = 0
  #sweep: NodeJS.Timeout | undefined

  constructor(parts: ConnectionsParts) {
    this.#parts = parts
  }

  /** Those to a destination, for one call: a pool that is empty is forgotten. */
  to(destination: Destination): Pool {
    let pool = this.#pools.get(destination.id)
    if (!pool) {
      this.#pools.set(destination.id, (pool = new Pool(destination, this)))
      pool.isRetired = !isConfigured(destination, this.#parts.channels())
    }
    return pool
  }

  /** Closes every connection. */
  close(): void {
    for (const pool of this.#pools.values()) pool.close()
    this.#rest()
  }

  // One timer for all connections, and none where there are none.
  opened(): void {
    this.#sweep ??= setInterval(() => this.#tick(), SWEEP_MS).unref()
  }

  spokeUnasked({ channel, upstream }: Destination): void {
    const isNews = this.#distrust.note(upstream, performance.now())
    this.#parts.onUnasked(channel, isNews)
    // Later on none of them is free.
    if (!isNews) return
    for (const pool of this.#pools.values()) if (pool.destination.upstream === upstream) pool.closeFree()
  }

  mayReuse({ destination, isRetired }: Pool): boolean {
    return !isRetired && !this.#distrust.isFor(destination.upstream, performance.now())
  }

  keeps(difference: number): void {
    this.#free += difference
    if (difference > 0 && this.#free > MOST_FREE) this.#largest().closeOldest()
  }

  // The one with most gives way, so that no channel has all of them to itself.
  #largest(): Pool {
    const pools = [...this.#pools.values()]
    return pools.reduce((largest, pool) => (pool.free > largest.free ? pool : largest))
  }

  #rest(): void {
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }

  #tick(): void {
    const nowMs = performance.now()
    this.#retire()
    for (const [id, pool] of this.#pools) {
      pool.tick(nowMs)
      if (pool.isEmpty) this.#pools.delete(id)
    }
    if (this.#pools.size === 0) this.#rest()
  }

  // Calls under way keep the settings that they began with, so that a pool ends with the last of them.
  #retire(): void {
    const channels = this.#parts.channels()
    if (channels === this.#channels) return
    this.#channels = channels
    for (const pool of this.#pools.values()) {
      pool.isRetired = !isConfigured(pool.destination, channels)
      if (pool.isRetired) pool.closeFree()
    }
  }
}
