import type { Channel } from '../domain/records/channel.ts'

/**
 * Consecutive failures that open a channel's circuit breaker. With a failure rate instead, a channel that
 * fails every other call would be out of rotation half of the time; its retries are limited by the retry
 * budget.
 */
const FAILURES_TO_OPEN = 5
/** First cooldown; it doubles after each failed trial. */
const MIN_COOLDOWN_MS = 5_000
/** Maximum cooldown reached by doubling. */
const MAX_COOLDOWN_MS = 60_000
/** Cooldowns set by `retry-after` above this are reported to the operator. */
const LONG_PAUSE_MS = 60_000
/** Maximum cooldown that an upstream's `retry-after` can set. */
const MAX_RETRY_AFTER_MS = 300_000

/** State of a channel. `probing` (half-open): its cooldown has ended, and the next response decides. */
export type CircuitState = 'works' | 'failing' | 'resting' | 'probing'

/** State of a channel's circuit breaker, for display. */
interface CircuitFigures {
  readonly state: CircuitState
  /** Consecutive failures. */
  readonly failures: number
  /** Milliseconds until its cooldown ends; 0 outside of a cooldown. */
  readonly restsForMs: number
}

interface Circuit {
  failures: number
  /** Length of the last cooldown; 0 before the first one. */
  cooldownMs: number
  openUntilMs: number
  /** Whether the state should be reported to the operator. */
  isResting: boolean
  /** Attempt that decides whether the channel has recovered (half-open). */
  trial: Trial | undefined
}

/**
 * Circuit breakers of all channels. Several consecutive failures open one for a cooldown; then a single trial
 * closes it or doubles the cooldown. They are kept by channel name, so that they survive a reload of the
 * configuration.
 */
export class ChannelHealth {
  /** Circuit breakers of channels that have failed since their last success. */
  readonly #circuits = new Map<string, Circuit>()

  /**
   * Reports whether a channel should be skipped: its circuit breaker is open, or its trial is in progress. If
   * the channel is probed, the circuit breaker stays open until a probe succeeds.
   */
  isCircuitOpen({ name, probe }: Channel, nowMs: number): boolean {
    if (this.#circuits.size === 0) return false
    const circuit = this.#circuits.get(name)
    if (!circuit) return false
    return (
      circuit.openUntilMs > nowMs || circuit.trial !== undefined || (probe !== null && circuit.cooldownMs > 0)
    )
  }

  /** The state of a channel. */
  figures(name: string, nowMs: number): CircuitFigures {
    const circuit = this.#circuits.get(name)
    if (!circuit) return { state: 'works', failures: 0, restsForMs: 0 }
    const { failures, cooldownMs, openUntilMs, trial } = circuit
    const restsForMs = Math.max(0, openUntilMs - nowMs)
    if (cooldownMs === 0) return { state: 'failing', failures, restsForMs }
    return { state: restsForMs > 0 && !trial ? 'resting' : 'probing', failures, restsForMs }
  }

  /** Number of channels whose circuit breaker is open or half-open. */
  openCircuits(nowMs: number): number {
    return [...this.#circuits.values()].filter(
      ({ openUntilMs, trial }) => openUntilMs > nowMs || trial !== undefined,
    ).length
  }

  /**
   * Names of channels that have been in cooldown, or waiting for a trial, since their last success, because
   * of consecutive failures or a long `retry-after`. Short pauses that an upstream demands belong to its rate
   * limit and are not included.
   */
  resting(): readonly string[] {
    if (this.#circuits.size === 0) return []
    return [...this.#circuits].filter(([, { isResting }]) => isResting).map(([name]) => name)
  }

  /** Begins an attempt; the first one after a cooldown is the trial. Hold the result with `using`. */
  begin({ name }: Channel): Trial {
    const trial = new Trial(this, name)
    const circuit = this.#circuits.size === 0 ? undefined : this.#circuits.get(name)
    if (circuit && circuit.cooldownMs > 0) circuit.trial ??= trial
    return trial
  }

  /** Only `Trial` may call this. */
  succeeded(name: string): void {
    if (this.#circuits.size > 0) this.#circuits.delete(name)
  }

  /** Only `Trial` may call this. Another attempt may become the trial. */
  abandoned(name: string, trial: Trial): void {
    const circuit = this.#circuits.size === 0 ? undefined : this.#circuits.get(name)
    if (circuit?.trial === trial) circuit.trial = undefined
  }

  /** Only `Trial` may call this. */
  failed(name: string, trial: Trial, nowMs: number, retryAfterMs: number): void {
    let circuit = this.#circuits.get(name)
    if (!circuit) {
      circuit = { failures: 0, cooldownMs: 0, openUntilMs: 0, isResting: false, trial: undefined }
      this.#circuits.set(name, circuit)
    }
    circuit.failures += 1
    const isTrial = circuit.trial === trial
    // Attempts that began before the circuit breaker opened do not extend its cooldown.
    if (circuit.openUntilMs > nowMs && !isTrial) return
    circuit.trial = undefined
    if (isTrial || circuit.failures >= FAILURES_TO_OPEN) {
      circuit.cooldownMs = Math.min(Math.max(circuit.cooldownMs * 2, MIN_COOLDOWN_MS), MAX_COOLDOWN_MS)
      circuit.openUntilMs = nowMs + circuit.cooldownMs
      circuit.isResting ||= circuit.failures >= FAILURES_TO_OPEN
    }
    if (retryAfterMs > 0) {
      circuit.isResting ||= retryAfterMs > LONG_PAUSE_MS
      circuit.cooldownMs = Math.max(circuit.cooldownMs, MIN_COOLDOWN_MS)
      circuit.openUntilMs = Math.max(circuit.openUntilMs, nowMs + Math.min(retryAfterMs, MAX_RETRY_AFTER_MS))
    }
  }
}

/**
 * One attempt at a channel, as counted by its circuit breaker. Only the first result counts. If it is
 * disposed of without a result, another attempt may become the trial.
 */
export class Trial implements Disposable {
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

  /** Records that the channel failed. `retryAfterMs`: the cooldown that its upstream demands. */
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
