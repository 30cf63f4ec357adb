import type { Channel } from '../domain/records/channel.ts'

/**
 * Failures in a row that open a channel's circuit. A share of failures would take a channel that fails every
 * other call out of rotation half of the time; the retry budget bounds its retries.
 */
const FAILURES_TO_OPEN = 5
/** First cooldown; doubled after each failed trial. */
const MIN_COOLDOWN_MS = 5_000
/** Longest cooldown that doubling leads to. */
const MAX_COOLDOWN_MS = 60_000
/** Cooldown set by `retry-after` above which the operator is told. */
const LONG_PAUSE_MS = 60_000
/** Longest cooldown that an upstream's `retry-after` can set. */
const MAX_RETRY_AFTER_MS = 300_000

/** State of a channel; `probing`: its cooldown is over, and the next answer decides. */
export type CircuitState = 'works' | 'failing' | 'resting' | 'probing'

/** A channel as its circuit breaker sees it. */
interface CircuitFigures {
  readonly state: CircuitState
  /** Failures in a row. */
  readonly failures: number
  /** Milliseconds until its cooldown is over; 0 outside one. */
  readonly restsForMs: number
}

interface Circuit {
  failures: number
  /** Length of the last cooldown; 0 before the first. */
  cooldownMs: number
  openUntilMs: number
  /** Whether it is worth telling the operator. */
  isResting: boolean
  /** Attempt that decides whether the channel is back (half-open). */
  trial: Trial | undefined
}

/**
 * Circuit breakers of all channels. Several failures in a row open one for a cooldown; then a single trial
 * closes it, or doubles the cooldown. Kept by channel name, so that they outlive a reload of the
 * configuration.
 */
export class ChannelHealth {
  /** Circuits of channels that failed since their last success. */
  readonly #circuits = new Map<string, Circuit>()

  /**
   * Whether a channel should be passed over: its circuit is open, or its trial is under way. The circuit of a
   * channel that is probed stays open until it has answered.
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

  /** Number of channels whose circuit is open or half-open. */
  openCircuits(nowMs: number): number {
    return [...this.#circuits.values()].filter(
      ({ openUntilMs, trial }) => openUntilMs > nowMs || trial !== undefined,
    ).length
  }

  /**
   * Channels that rest since they last answered, by failures in a row or for a long `retry-after`, in
   * cooldown or waiting for a trial. Short pauses that an upstream asks for are part of its rate limit.
   */
  resting(): readonly string[] {
    if (this.#circuits.size === 0) return []
    return [...this.#circuits].filter(([, { isResting }]) => isResting).map(([name]) => name)
  }

  /** Begins an attempt; the first after a cooldown is the one that decides. Hold the result with `using`. */
  begin({ name }: Channel): Trial {
    const trial = new Trial(this, name)
    const circuit = this.#circuits.size === 0 ? undefined : this.#circuits.get(name)
    if (circuit && circuit.cooldownMs > 0) circuit.trial ??= trial
    return trial
  }

  /** Called by `Trial` alone. */
  succeeded(name: string): void {
    if (this.#circuits.size > 0) this.#circuits.delete(name)
  }

  /** Called by `Trial` alone: another attempt may decide. */
  abandoned(name: string, trial: Trial): void {
    const circuit = this.#circuits.size === 0 ? undefined : this.#circuits.get(name)
    if (circuit?.trial === trial) circuit.trial = undefined
  }

  /** Called by `Trial` alone. */
  failed(name: string, trial: Trial, nowMs: number, retryAfterMs: number): void {
    let circuit = this.#circuits.get(name)
    if (!circuit) {
      circuit = { failures: 0, cooldownMs: 0, openUntilMs: 0, isResting: false, trial: undefined }
      this.#circuits.set(name, circuit)
    }
    circuit.failures += 1
    const isTrial = circuit.trial === trial
    // Attempts that began before the circuit opened do not extend its cooldown.
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
 * One attempt at a channel, as its circuit breaker counts it. Only the first result counts. Without a result
 * by the time of its disposal, another attempt may decide.
 */
export class Trial implements Disposable {
  readonly #health: ChannelHealth
  readonly #name: string
  #isOver = false

  /** Called by `ChannelHealth.begin` alone. */
  constructor(health: ChannelHealth, name: string) {
    this.#health = health
    this.#name = name
  }

  /** Records that the channel answered. */
  succeeded(): void {
    if (this.#endOnce()) this.#health.succeeded(this.#name)
  }

  /** Records that the channel failed. `retryAfterMs`: the cooldown that its upstream asked for. */
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
