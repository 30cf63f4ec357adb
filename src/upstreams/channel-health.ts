import type { Channel } from '../domain/channel.ts'

/** Failures in a row after which a channel is left alone. */
const FAILURES_TO_OPEN = 5
/** How long it rests at first; twice as long after each failed probe, up to the longest. */
const MIN_COOLDOWN_MS = 5_000
const MAX_COOLDOWN_MS = 60_000
/** No upstream's word sends it to rest for longer. */
const MAX_RETRY_AFTER_MS = 300_000

interface Circuit {
  failures: number
  /** How long the last rest was. */
  cooldownMs: number
  openUntilMs: number
  /** The attempt that is finding out whether it works again. */
  trial: Trial | undefined
}

/**
 * Which channels work. One that fails several times in a row rests; then a single attempt probes it, and it
 * is back in its place, or rests for twice as long. By name, so that it outlives a reading of the
 * configuration.
 */
export class ChannelHealth {
  /** Of channels that failed lately; nothing is kept of the others. */
  readonly #circuits = new Map<string, Circuit>()

  /** Whether a channel should be passed over: it rests, or another attempt is probing it. */
  isCircuitOpen({ name }: Channel, nowMs: number): boolean {
    if (this.#circuits.size === 0) return false
    const circuit = this.#circuits.get(name)
    return circuit !== undefined && (circuit.openUntilMs > nowMs || circuit.trial !== undefined)
  }

  /** How many channels rest or are being probed. */
  openCircuits(nowMs: number): number {
    return [...this.#circuits.values()].filter(
      ({ openUntilMs: restsUntilMs, trial: probe }) => restsUntilMs > nowMs || probe !== undefined,
    ).length
  }

  /** An attempt is about to be made: the first after a rest is the probe. Hold its trial with `using`. */
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

  /** Called by `Trial` alone: another may probe. */
  abandoned(name: string, trial: Trial): void {
    const circuit = this.#circuits.size === 0 ? undefined : this.#circuits.get(name)
    if (circuit?.trial === trial) circuit.trial = undefined
  }

  /** Called by `Trial` alone. */
  failed(name: string, trial: Trial, nowMs: number, retryAfterMs: number): void {
    let circuit = this.#circuits.get(name)
    if (!circuit) {
      circuit = { failures: 0, cooldownMs: 0, openUntilMs: 0, trial: undefined }
      this.#circuits.set(name, circuit)
    }
    circuit.failures += 1
    const isTrial = circuit.trial === trial
    // Attempts that were begun before it was sent to rest add nothing to it.
    if (circuit.openUntilMs > nowMs && !isTrial) return
    circuit.trial = undefined
    if (isTrial || circuit.failures >= FAILURES_TO_OPEN) {
      circuit.cooldownMs = Math.min(Math.max(circuit.cooldownMs * 2, MIN_COOLDOWN_MS), MAX_COOLDOWN_MS)
      circuit.openUntilMs = nowMs + circuit.cooldownMs
    }
    if (retryAfterMs > 0) {
      circuit.cooldownMs = Math.max(circuit.cooldownMs, MIN_COOLDOWN_MS)
      circuit.openUntilMs = Math.max(circuit.openUntilMs, nowMs + Math.min(retryAfterMs, MAX_RETRY_AFTER_MS))
    }
  }
}

/**
 * One attempt on a channel. Its result is recorded exactly once: the first that is told counts, and where
 * none was told by the time it is disposed of, whether the channel works is still unknown and another attempt
 * may probe it.
 */
export class Trial implements Disposable {
  readonly #health: ChannelHealth
  readonly #name: string
  #isOver = false

  /** Made by `ChannelHealth.begin` alone. */
  constructor(health: ChannelHealth, name: string) {
    this.#health = health
    this.#name = name
  }

  /** The channel answered. */
  succeeded(): void {
    if (this.#endOnce()) this.#health.succeeded(this.#name)
  }

  /** It did not answer, or with an error of its own. `wishMs`: for how long it asked to be left alone. */
  failed(nowMs: number, wishMs = 0): void {
    if (this.#endOnce()) this.#health.failed(this.#name, this, nowMs, wishMs)
  }

  /** Ends a trial that told nothing. */
  [Symbol.dispose](): void {
    if (this.#endOnce()) this.#health.abandoned(this.#name, this)
  }

  #endOnce(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    return true
  }
}
