import type { Channel } from '../../domain/records/channel.ts'
import { type Destination, isConfigured } from './destination.ts'
import { DistrustedUpstreams } from './distrusted-upstreams.ts'
import { Pool, type PoolOwner } from './pool.ts'

/** Interval at which timeouts are checked. */
const SWEEP_MS = 100
/** Most idle connections of all pools together. */
const MAX_IDLE = 1_024

/** Parts of the connection pools. */
export interface ConnectionPoolsParts {
  /** Channels of the live configuration; a new list after each change. */
  readonly channels: () => readonly Channel[]
  /** Reports unsolicited bytes of a channel's upstream; `isNews` if it was trusted until now. */
  readonly onUnsolicited: (channel: string, isNews: boolean) => void
}

/** Connections to all upstreams: a pool per destination, while it has a connection or a request. */
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

  /** Pool of a destination. Use it at once: an empty pool is deleted. */
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

  // One timer serves all connections; it stops when there are none.
  onOpened(): void {
    this.#sweep ??= setInterval(this.#sweepAfterInput, SWEEP_MS).unref()
  }

  onUnsolicited({ channel, upstream }: Destination): void {
    const isNews = this.#distrusted.add(upstream, performance.now())
    this.#parts.onUnsolicited(channel, isNews)
    // While an upstream is distrusted, its connections are never idle.
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

  // The pool with the most idle connections gives one up, so that no channel takes the whole budget.
  #largest(): Pool {
    const pools = [...this.#pools.values()]
    return pools.reduce((largest, pool) => (pool.idle > largest.idle ? pool : largest))
  }

  #stopSweep(): void {
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }

  // After a blocked event loop bytes may have arrived in time and unread: they are read first.
  readonly #sweepAfterInput = (): void => {
    const nowMs = performance.now()
    setImmediate(() => this.#tick(nowMs))
  }

  #tick(nowMs: number): void {
    this.#retire()
    for (const [id, pool] of this.#pools) {
      pool.tick(nowMs)
      if (pool.isEmpty) this.#pools.delete(id)
    }
    if (this.#pools.size === 0) this.#stopSweep()
  }

  // Requests under way keep their settings, so that a retired pool ends with the last of them.
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
