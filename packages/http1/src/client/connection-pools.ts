import type { Destination } from './destination.ts'
import { DistrustedUpstreams } from './distrusted-upstreams.ts'
import { Pool, type PoolOwner } from './pool.ts'

/** Interval at which timeouts are checked. */
const SWEEP_MS = 100
/** Maximum number of idle connections of all pools together. */
const MAX_IDLE = 1_024

/** Settings that destinations come from. */
export interface DestinationSource<Target extends Destination> {
  /** Settings that are in force; another value after each change. */
  current(): unknown
  /** Whether the current settings still have a destination: connections to others are not reused. */
  has(destination: Target): boolean
}

/** Options of the connection pools. */
export interface ConnectionPoolsOptions<Target extends Destination> {
  /** Headers of a response that are read beside `content-type` and `retry-after`, in lower case. */
  readonly readHeaders?: Iterable<string>
  /** Source of the destinations; without it, none is ever retired. */
  readonly source?: DestinationSource<Target>
  /** Reports unsolicited bytes of an upstream; `isNews` if it was trusted until now. */
  readonly onUnsolicited?: (destination: Target, isNews: boolean) => void
}

/** Connections to all upstreams: a pool per destination, while it has a connection or a request. */
export class ConnectionPools<Target extends Destination = Destination> implements PoolOwner<Target> {
  readonly readHeaders: ReadonlySet<string>
  readonly #options: ConnectionPoolsOptions<Target>
  readonly #pools = new Map<string, Pool<Target>>()
  readonly #distrusted = new DistrustedUpstreams()
  /** Settings at the latest check for retired destinations. */
  #settings: unknown
  #idle = 0
  #sweep: NodeJS.Timeout | undefined

  constructor(options: ConnectionPoolsOptions<Target> = {}) {
    this.readHeaders = new Set(options.readHeaders)
    this.#options = options
  }

  /** Pool of a destination. Use it at once: an empty pool is deleted. */
  poolFor(destination: Target): Pool<Target> {
    let pool = this.#pools.get(destination.id)
    if (!pool) {
      this.#pools.set(destination.id, (pool = new Pool(destination, this)))
      pool.isRetired = this.#isRetired(destination)
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

  onUnsolicited(destination: Target): void {
    const { upstream } = destination
    const isNews = this.#distrusted.add(upstream, performance.now())
    this.#options.onUnsolicited?.(destination, isNews)
    // While an upstream is distrusted, its connections are never idle.
    if (!isNews) return
    for (const pool of this.#pools.values()) if (pool.destination.upstream === upstream) pool.closeIdle()
  }

  mayReuse({ destination, isRetired }: Pool<Target>): boolean {
    return !isRetired && !this.#distrusted.has(destination.upstream, performance.now())
  }

  onIdleChange(difference: number): void {
    this.#idle += difference
    if (difference > 0 && this.#idle > MAX_IDLE) this.#largest().closeOldestIdle()
  }

  // The pool with the most idle connections gives one up, so that no destination takes the whole budget.
  #largest(): Pool<Target> {
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
    const settings = this.#options.source?.current()
    if (settings === this.#settings) return
    this.#settings = settings
    for (const pool of this.#pools.values()) {
      pool.isRetired = this.#isRetired(pool.destination)
      if (pool.isRetired) pool.closeIdle()
    }
  }

  #isRetired(destination: Target): boolean {
    return this.#options.source?.has(destination) === false
  }
}
