import type { Destination } from './destination.ts'
import { DistrustedUpstreams } from './distrusted-upstreams.ts'
import { Pool, type PoolOwner } from './pool.ts'

/** Interval in milliseconds at which timeouts are checked. */
const SWEEP_MS = 100
/** Maximum number of idle connections of all pools together. */
const MAX_IDLE = 1_024

/** Configuration that decides which destinations exist. */
export interface DestinationSource<Target extends Destination> {
  /** Returns the current configuration: the same value until the configuration changes. */
  current(): unknown
  /**
   * Whether the current configuration still has a destination; connections to other destinations are not
   * reused.
   */
  has(destination: Target): boolean
}

export interface ConnectionPoolsOptions<Target extends Destination> {
  /** Names, in lower case, of response headers to read in addition to `content-type` and `retry-after`. */
  readonly readHeaders?: Iterable<string>
  /** Configuration of the destinations; without it, no destination is ever retired. */
  readonly source?: DestinationSource<Target>
  /** Reports that an upstream sent bytes without a request. `isNews`: the upstream was trusted until now. */
  readonly onUnsolicited?: (destination: Target, isNews: boolean) => void
}

/** Connections to all upstreams. A destination has a pool as long as it has a connection or a request. */
export class ConnectionPools<Target extends Destination = Destination> implements PoolOwner<Target> {
  readonly readHeaders: ReadonlySet<string>
  readonly #options: ConnectionPoolsOptions<Target>
  readonly #pools = new Map<string, Pool<Target>>()
  readonly #distrusted = new DistrustedUpstreams()
  /** Configuration at the latest check for retired destinations. */
  #settings: unknown
  #idle = 0
  #sweep: NodeJS.Timeout | undefined

  constructor(options: ConnectionPoolsOptions<Target> = {}) {
    this.readHeaders = new Set(options.readHeaders)
    this.#options = options
  }

  /**
   * Returns the pool of a destination. Use it at once: a pool without connections and requests is deleted.
   */
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
    // A distrusted upstream has no idle connections to close: they are never reused.
    if (!isNews) return
    for (const pool of this.#pools.values()) if (pool.destination.upstream === upstream) pool.closeIdle()
  }

  mayReuse({ destination, isRetired }: Pool<Target>): boolean {
    if (isRetired) return false
    return this.#distrusted.isEmpty || !this.#distrusted.has(destination.upstream, performance.now())
  }

  onIdleChange(difference: number): void {
    this.#idle += difference
    if (difference > 0 && this.#idle > MAX_IDLE) this.#largest().closeOldestIdle()
  }

  // Idle connections are closed in the pool that has most of them, so that no destination takes the whole
  // limit.
  #largest(): Pool<Target> {
    const pools = [...this.#pools.values()]
    return pools.reduce((largest, pool) => (pool.idle > largest.idle ? pool : largest))
  }

  #stopSweep(): void {
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }

  // If the event loop was blocked, bytes may have arrived in time but not been read: they are read before
  // timeouts are checked.
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

  // Requests under way keep their connection, so a retired pool ends with the last of its requests.
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
