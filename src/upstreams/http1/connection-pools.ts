import type { Channel } from '../../domain/channel.ts'
import { type Destination, isConfigured } from './destination.ts'
import { DistrustedUpstreams } from './distrusted-upstreams.ts'
import { Pool, type PoolOwner } from './pool.ts'

/** How often time-outs are looked at: none is noticed later than that. */
const SWEEP_MS = 100
/** Connections that are kept for later calls, of all pools together. */
const MAX_IDLE = 1_024

/** What connections ask of the gateway, and tell it. */
export interface ConnectionPoolsParts {
  /** The channels in force; another list whenever they have changed. */
  readonly channels: () => readonly Channel[]
  /** A channel's upstream sent bytes that nobody asked for; `isNews` if it was trusted until now. */
  readonly onUnsolicited: (channel: string, isNews: boolean) => void
}

/**
 * The connections to all upstreams. There is a pool for each destination while it has a connection or a call.
 */
export class ConnectionPools implements PoolOwner {
  readonly #parts: ConnectionPoolsParts
  readonly #pools = new Map<string, Pool>()
  readonly #distrusted = new DistrustedUpstreams()
  #channels: readonly Channel[] | undefined
  #idle = 0
  #sweep: NodeJS.Timeout | undefined

  constructor(parts: ConnectionPoolsParts) {
    this.#parts = parts
  }

  /** Those to a destination, for one call: a pool that is empty is forgotten. */
  poolFor(destination: Destination): Pool {
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
    this.#stopSweep()
  }

  // One timer for all connections, and none where there are none.
  onOpened(): void {
    this.#sweep ??= setInterval(() => this.#tick(), SWEEP_MS).unref()
  }

  onUnsolicited({ channel, upstream }: Destination): void {
    const isNews = this.#distrusted.add(upstream, performance.now())
    this.#parts.onUnsolicited(channel, isNews)
    // Later on none of them is free.
    if (!isNews) return
    for (const pool of this.#pools.values()) if (pool.destination.upstream === upstream) pool.closeIdle()
  }

  mayReuse({ destination, isRetired }: Pool): boolean {
    return !isRetired && !this.#distrusted.has(destination.upstream, performance.now())
  }

  onIdleChange(difference: number): void {
    this.#idle += difference
    if (difference > 0 && this.#idle > MAX_IDLE) this.#largest().closeOldestIdle()
  }

  // The one with most gives way, so that no channel has all of them to itself.
  #largest(): Pool {
    const pools = [...this.#pools.values()]
    return pools.reduce((largest, pool) => (pool.idle > largest.idle ? pool : largest))
  }

  #stopSweep(): void {
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
    if (this.#pools.size === 0) this.#stopSweep()
  }

  // Calls under way keep the settings that they began with, so that a pool ends with the last of them.
  #retire(): void {
    const channels = this.#parts.channels()
    if (channels === this.#channels) return
    this.#channels = channels
    for (const pool of this.#pools.values()) {
      pool.isRetired = !isConfigured(pool.destination, channels)
      if (pool.isRetired) pool.closeIdle()
    }
  }
}
