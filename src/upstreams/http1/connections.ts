import type { LookupFunction } from 'node:net'
import { OriginPool } from './origin-pool.ts'

/** How often time-outs are looked at: none is noticed later than that. */
const SWEEP_MS = 100

/** The connections to all upstreams. */
export class Connections {
  readonly #pools = new Map<string, OriginPool>()
  #sweep: NodeJS.Timeout | undefined

  /** Those to the origin of a URL; with `lookup`, which is the same each time, to addresses that it finds. */
  to(url: URL, lookup?: LookupFunction): OriginPool {
    const name = lookup ? `${url.origin} looked up` : url.origin
    let pool = this.#pools.get(name)
    if (!pool) this.#pools.set(name, (pool = new OriginPool(url, () => this.#watch(), lookup)))
    return pool
  }

  /** Closes every connection. */
  close(): void {
    for (const pool of this.#pools.values()) pool.close()
    this.#rest()
  }

  // One timer for all connections, and none where there are none.
  #watch(): void {
    this.#sweep ??= setInterval(() => this.#tick(), SWEEP_MS).unref()
  }

  #rest(): void {
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }

  #tick(): void {
    const nowMs = performance.now()
    let open = 0
    for (const pool of this.#pools.values()) open += pool.tick(nowMs)
    if (open === 0) this.#rest()
  }
}
