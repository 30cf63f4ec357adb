import type { Channel } from '../domain/records/channel.ts'
import { MAX_RETRY_AFTER_MS } from './retry-after.ts'

/**
 * Number of consecutive failures after which a channel's circuit breaker opens. A failure rate is not used,
 * because a channel that fails every other call would then be skipped half of the time; retries are limited
 * by the retry budget anyway.
 */
const FAILURES_TO_OPEN = 5
/**
 * Milliseconds for which a circuit breaker stays open the first time. The time doubles whenever the deciding
 * attempt fails.
 */
const MIN_OPEN_MS = 5_000
/** Maximum milliseconds for which a circuit breaker stays open. */
const MAX_OPEN_MS = 60_000
/**
 * If a channel's `retry-after` demands a pause longer than this (in milliseconds), the operator is informed.
 */
const LONG_PAUSE_MS = 60_000

/** State of a circuit breaker. In `half-open`, the next attempt decides whether it closes. */
type BreakerState = 'closed' | 'open' | 'half-open'

/** State of a channel's circuit breaker, for the console and the API. */
interface BreakerFigures {
  readonly state: BreakerState
  /** Number of consecutive failures. */
  readonly failures: number
  /** Milliseconds for which the circuit breaker will stay open; 0 if it is not open. */
  readonly openForMs: number
  /** Whether the attempt that decides whether the circuit breaker closes is under way. */
  readonly isTried: boolean
}

/** The circuit breaker of a channel that has failed. */
interface Breaker {
  failures: number
  /** Whether the circuit breaker is open or half-open. */
  isOpen: boolean
  /** Milliseconds for which the circuit breaker was last opened; 0 if it never was. */
  openMs: number
  openUntilMs: number
  /** Number of attempts at all channels that had begun when the circuit breaker last opened. */
  openedAfter: number
  /** Whether the operator should be informed that the circuit breaker is open. */
  isReported: boolean
  /**
   * The attempt that decides whether the circuit breaker closes. It closes as soon as the channel answers this attempt, and
   * opens again if the answer breaks off.
   */
  decisive: CountedAttempt | undefined
}

/**
 * Circuit breakers of all channels. Consecutive failures open a channel's breaker for some time; then it is
 * half-open, and a single attempt either closes it or opens it for twice as long. The breakers are stored by
 * channel name, so that they survive a reload of the configuration.
 */
export class ChannelHealth {
  /** Circuit breakers by channel name, for channels that have failed since their last success. */
  readonly #breakers = new Map<string, Breaker>()
  readonly #onRecovered: ((name: string) => void) | undefined
  /** Number of attempts that have begun. */
  #begun = 0

  /** `onRecovered` is called when an open circuit breaker closes. */
  constructor(onRecovered?: (name: string) => void) {
    this.#onRecovered = onRecovered
  }

  /**
   * Whether a channel should be skipped, because its circuit breaker is open, or because it is half-open and
   * the attempt that decides is still running. A channel with the setting `probe` is skipped until a test
   * request succeeds.
   */
  isOpen({ name, probe }: Channel, nowMs: number): boolean {
    if (this.#breakers.size === 0) return false
    const breaker = this.#breakers.get(name)
    if (!breaker) return false
    return breaker.isOpen && (breaker.openUntilMs > nowMs || breaker.decisive !== undefined || probe !== null)
  }

  /** The circuit breaker of a channel. */
  breakerOf(name: string, nowMs: number): BreakerFigures {
    const breaker = this.#breakers.get(name)
    if (!breaker) return { state: 'closed', failures: 0, openForMs: 0, isTried: false }
    const { failures, isOpen, openUntilMs, decisive } = breaker
    if (!isOpen) return { state: 'closed', failures, openForMs: 0, isTried: false }
    const openForMs = Math.max(0, openUntilMs - nowMs)
    const isTried = decisive !== undefined
    return { state: openForMs > 0 && !isTried ? 'open' : 'half-open', failures, openForMs, isTried }
  }

  /** Number of channels whose circuit breaker is open or half-open. */
  openBreakers(nowMs: number): number {
    return [...this.#breakers.values()].filter(
      ({ isOpen, openUntilMs, decisive }) => isOpen && (openUntilMs > nowMs || decisive !== undefined),
    ).length
  }

  /**
   * Names of channels to report to the operator, because their circuit breaker has opened since their last
   * success after consecutive failures or a long `retry-after`. Channels with a short pause are not included,
   * because it belongs to the upstream's rate limit.
   */
  opened(): readonly string[] {
    if (this.#breakers.size === 0) return []
    return [...this.#breakers]
      .filter(([, { isOpen, isReported }]) => isOpen && isReported)
      .map(([name]) => name)
  }

  /**
   * Begins an attempt at a channel. While the channel's circuit breaker is half-open, the first attempt
   * decides whether it closes. The result must be held with `using`, so that the attempt always ends.
   */
  begin({ name }: Channel): CountedAttempt {
    const attempt = new CountedAttempt(this, name, ++this.#begun)
    const breaker = this.#breakers.size === 0 ? undefined : this.#breakers.get(name)
    if (breaker?.isOpen) breaker.decisive ??= attempt
    return attempt
  }

  /**
   * Closes the channel's circuit breaker, unless the attempt began before it opened. Called only by
   * `CountedAttempt`.
   */
  succeeded(name: string, attempt: CountedAttempt): void {
    if (this.#breakers.size === 0) return
    const breaker = this.#breakers.get(name)
    if (!breaker || attempt.number <= breaker.openedAfter) return
    if (breaker.isOpen) this.#onRecovered?.(name)
    this.#breakers.delete(name)
  }

  /**
   * Closes the channel's circuit breaker if the attempt decides that, although its answer has only begun. Called only by
   * `CountedAttempt`.
   */
  answered(name: string, attempt: CountedAttempt): void {
    const breaker = this.#breakers.get(name)
    if (!breaker?.isOpen || breaker.decisive !== attempt) return
    breaker.isOpen = false
    breaker.failures = 0
    breaker.openUntilMs = 0
    this.#onRecovered?.(name)
  }

  /** Lets another attempt decide whether the circuit breaker closes. Called only by `CountedAttempt`. */
  abandoned(name: string, attempt: CountedAttempt): void {
    const breaker = this.#breakers.size === 0 ? undefined : this.#breakers.get(name)
    if (breaker?.decisive === attempt) breaker.decisive = undefined
  }

  /**
   * Counts a failure of the channel, and opens its circuit breaker if necessary. Called only by
   * `CountedAttempt`.
   */
  failed(name: string, attempt: CountedAttempt, nowMs: number, retryAfterMs: number): void {
    let breaker = this.#breakers.get(name)
    if (!breaker) {
      breaker = {
        failures: 0,
        isOpen: false,
        openMs: 0,
        openUntilMs: 0,
        openedAfter: 0,
        isReported: false,
        decisive: undefined,
      }
      this.#breakers.set(name, breaker)
    }
    breaker.failures += 1
    const isDecisive = breaker.decisive === attempt
    // If the circuit breaker is already open, the failure of an attempt that began before does not prolong
    // this.
    if (!isDecisive && (breaker.openUntilMs > nowMs || attempt.number <= breaker.openedAfter)) return
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
    if (breaker.openUntilMs <= nowMs) return
    breaker.isOpen = true
    breaker.openedAfter = this.#begun
    breaker.decisive = undefined
  }
}

/**
 * An attempt at a channel whose result its circuit breaker counts. Only the first result counts. If the
 * attempt ends without a result, another attempt may decide whether the breaker closes.
 */
export class CountedAttempt implements Disposable {
  readonly #health: ChannelHealth
  readonly #name: string
  /** Number of attempts at all channels that had begun with this one. */
  readonly number: number
  #isOver = false

  /** Called only by `ChannelHealth.begin`. */
  constructor(health: ChannelHealth, name: string, number: number) {
    this.#health = health
    this.#name = name
    this.number = number
  }

  /** Records that the answer has begun. If it breaks off, the channel has failed nevertheless. */
  answered(): void {
    if (!this.#isOver) this.#health.answered(this.#name, this)
  }

  /** Records that the channel responded. */
  succeeded(): void {
    if (this.#endOnce()) this.#health.succeeded(this.#name, this)
  }

  /**
   * Records that the channel failed. `retryAfterMs` is the pause that its upstream demands, in milliseconds.
   */
  failed(nowMs: number, retryAfterMs = 0): void {
    if (this.#endOnce()) this.#health.failed(this.#name, this, nowMs, retryAfterMs)
  }

  /** Ends the attempt without a result, unless it has one. */
  [Symbol.dispose](): void {
    if (this.#endOnce()) this.#health.abandoned(this.#name, this)
  }

  #endOnce(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    return true
  }
}
