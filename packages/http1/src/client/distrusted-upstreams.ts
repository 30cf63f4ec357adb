/** Milliseconds for which connections to an upstream are not reused after it sent bytes without a request. */
const DISTRUST_MS = 600_000

/**
 * Upstreams that sent bytes without a request. The next request on such a connection could take them for its
 * response.
 */
export class DistrustedUpstreams {
  readonly #untilMs = new Map<string, number>()

  /** Whether no upstream is distrusted, so that the time need not be read. */
  get isEmpty(): boolean {
    return this.#untilMs.size === 0
  }

  /** Distrusts an upstream for ten minutes from now. Returns whether it was trusted before. */
  add(upstream: string, nowMs: number): boolean {
    const wasTrusted = !this.has(upstream, nowMs)
    this.#untilMs.set(upstream, nowMs + DISTRUST_MS)
    return wasTrusted
  }

  /** Whether connections to the upstream must not be reused. */
  has(upstream: string, nowMs: number): boolean {
    const untilMs = this.#untilMs.get(upstream)
    if (untilMs === undefined) return false
    if (untilMs > nowMs) return true
    this.#untilMs.delete(upstream)
    return false
  }
}
