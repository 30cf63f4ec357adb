import type { Channel } from '../domain/records/channel.ts'
import { MAX_RETRY_AFTER_MS } from './retry-after.ts'

/**
 * Consecutive failures that open a channel's circuit breaker. With a failure rate instead, a channel that
 * fails every other call would be out of rotation half of the time; its retries are limited by the retry
 * budget.
 */
const FAILURES_TO_OPEN = 5
/** For how long it is open at first; doubled each time that it opens again while half-open. */
const MIN_OPEN_MS = 5_000
/** Maximum reached by doubling. */
const MAX_OPEN_MS = 60_000
/** A `retry-after` above this is reported to the operator. */
const LONG_PAUSE_MS = 60_000

/** State of a circuit breaker. While it is half-open, the next response decides. */
type BreakerState = 'closed' | 'open' | 'half-open'

/** State of a channel's circuit breaker, for display. */
interface BreakerFigures {
  readonly state: BreakerState
  /** Consecutive failures. */
  readonly failures: number
  /** Milliseconds for which it is still open. */
  readonly openForMs: number
}

/** The circuit breaker of a channel that has failed. */
interface Breaker {
  failures: number
  /** For how long it was opened last; 0 while it is closed. */
  openMs: number
  openUntilMs: number
  /** Whether the state should be reported to the operator. */
  isReported: boolean
  /** The attempt that decides while it is half-open. */
  decisive: CountedAttempt | undefined
}

/**
 * Circuit breakers of all channels. Several consecutive failures open one for some time; then it is
 * half-open, and a single attempt closes it, or opens it for twice as long. They are kept by channel name, so
 * that they survive a reload of the configuration.
 */
export class ChannelHealth {
  /** Circuit breakers of channels that have failed since their last success. */
  readonly #breakers = new Map<string, Breaker>()
  readonly #onRecovered: ((name: string) => void) | undefined

  /** `onRecovered` is called when a circuit breaker that was open closes. */
  constructor(onRecovered?: (name: string) => void) {
    this.#onRecovered = onRecovered
  }

  /**
   * Reports whether a channel should be skipped: its circuit breaker is open, or half-open with an attempt
   * under way. If the channel is probed, it is skipped until a probe succeeds.
   */
  isOpen({ name, probe }: Channel, nowMs: number): boolean {
    if (this.#breakers.size === 0) return false
    const breaker = this.#breakers.get(name)
    if (!breaker) return false
    return (
      breaker.openUntilMs > nowMs || breaker.decisive !== undefined || (probe !== null && breaker.openMs > 0)
    )
  }

  /** The circuit breaker of a channel. */
  breakerOf(name: string, nowMs: number): BreakerFigures {
    const breaker = this.#breakers.get(name)
    if (!breaker) return { state: 'closed', failures: 0, openForMs: 0 }
    const { failures, openMs, openUntilMs, decisive } = breaker
    const openForMs = Math.max(0, openUntilMs - nowMs)
    if (openMs === 0) return { state: 'closed', failures, openForMs }
    return { state: openForMs > 0 && !decisive ? 'open' : 'half-open', failures, openForMs }
  }

  /** Number of channels whose circuit breaker is open or half-open. */
  openBreakers(nowMs: number): number {
    return [...this.#breakers.values()].filter(
      ({ openUntilMs, decisive }) => openUntilMs > nowMs || decisive !== undefined,
    ).length
  }

  /**
   * Names of channels whose circuit breaker has been open or half-open since their last success, because of
   * consecutive failures or a long `retry-after`. Short pauses that an upstream demands belong to its rate
   * limit and are not included.
   */
  opened(): readonly string[] {
    if (this.#breakers.size === 0) return []
    return [...this.#breakers].filter(([, { isReported }]) => isReported).map(([name]) => name)
  }

  /** Begins an attempt; the first one while half-open decides. Hold the result with `using`. */
  begin({ name }: Channel): CountedAttempt {
    const attempt = new CountedAttempt(this, name)
    const breaker = this.#breakers.size === 0 ? undefined : this.#breakers.get(name)
    if (breaker && breaker.openMs > 0) breaker.decisive ??= attempt
    return attempt
  }

  /** Only `CountedAttempt` may call this. */
  succeeded(name: string): void {
    if (this.#breakers.size === 0) return
    const breaker = this.#breakers.get(name)
    if (breaker && breaker.openMs > 0) this.#onRecovered?.(name)
    this.#breakers.delete(name)
  }

  /** Only `CountedAttempt` may call this. Another attempt may decide. */
  abandoned(name: string, attempt: CountedAttempt): void {
    const breaker = this.#breakers.size === 0 ? undefined : this.#breakers.get(name)
    if (breaker?.decisive === attempt) breaker.decisive = undefined
  }

  /** Only `CountedAttempt` may call this. */
  failed(name: string, attempt: CountedAttempt, nowMs: number, retryAfterMs: number): void {
    let breaker = this.#breakers.get(name)
    if (!breaker) {
      breaker = { failures: 0, openMs: 0, openUntilMs: 0, isReported: false, decisive: undefined }
      this.#breakers.set(name, breaker)
    }
    breaker.failures += 1
    const isDecisive = breaker.decisive === attempt
    // Attempts that began before the circuit breaker opened do not keep it open longer.
    if (breaker.openUntilMs > nowMs && !isDecisive) return
    breaker.decisive = undefined
    if (isDecisive || breaker.failures >= FAILURES_TO_OPEN) {
      breaker.openMs = Math.min(Math.max(breaker.openMs * 2, MIN_OPEN_MS), MAX_OPEN_MS)
      breaker.openUntilMs = nowMs + breaker.openMs
      breaker.isReported ||= breaker.failures >= FAILURES_TO_OPEN
    }
    if (retryAfterMs > 0) {
      breaker.isReported ||= retryAfterMs > LONG_PAUSE_MS
      breaker.openMs = Math.max(breaker.openMs, MIN_OPEN_MS)
      breaker.openUntilMs = Math.max(breaker.openUntilMs, nowMs + Math.min(retryAfterMs, MAX_RETRY_AFTER_MS))
    }
  }
}

/**
 * One attempt at a channel, as counted by its circuit breaker. Only the first result counts. If it is
 * disposed of without a result, another attempt may decide.
 */
export class CountedAttempt implements Disposable {
  readonly #health: ChannelHealth
  readonly #name: string
  #isOver = false

  /** Only `ChannelHealth.begin` may call this. */
  constructor(health: ChannelHealth, name: string) {
    this.#health = health
    this.#name = name
  }

  /** Records that the channel responded. */
  succeeded(): void {
    if (this.#endOnce()) this.#health.succeeded(this.#name)
  }

  /** Records that the channel failed. `retryAfterMs`: the pause that its upstream demands. */
  failed(nowMs: number, retryAfterMs = 0): void {
    if (this.#endOnce()) this.#health.failed(this.#name, this, nowMs, retryAfterMs)
  }

  /** Ends the attempt without a result, if it has none. */
  [Symbol.dispose](): void {
    if (this.#endOnce()) this.#health.abandoned(this.#name, this)
  }

  #endOnce(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    return true
  }
}
