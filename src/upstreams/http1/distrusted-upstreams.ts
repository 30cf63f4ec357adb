/** How long an upstream that sent what nobody asked for has a connection for each call. */
const DISTRUST_MS = 600_000

/**
 * Upstreams that sent bytes which nobody asked for: what the next call on that connection hears may be
 * another's answer.
 */
export class DistrustedUpstreams {
  readonly #untilMs = new Map<string, number>()

  /** Begins the time anew; tells whether it was trusted until now. */
  add(upstream: string, nowMs: number): boolean {
    const wasTrusted = !this.has(upstream, nowMs)
    this.#untilMs.set(upstream, nowMs + DISTRUST_MS)
    return wasTrusted
  }

  /** Whether its connections must not be used again. */
  has(upstream: string, nowMs: number): boolean {
    if (this.#untilMs.size === 0) return false
    const untilMs = this.#untilMs.get(upstream)
    if (untilMs === undefined) return false
    if (untilMs > nowMs) return true
    this.#untilMs.delete(upstream)
    return false
  }
}
