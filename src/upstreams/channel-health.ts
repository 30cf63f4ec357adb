import type { Channel } from '../domain/channel.ts'

/** Failures in a row after which a channel is left alone. */
const FAILURES = 5
/** How long it rests at first; twice as long after each failed probe, up to the longest. */
const FIRST_REST_MS = 5_000
const LONGEST_REST_MS = 60_000
/** No upstream's word sends it to rest for longer. */
const LONGEST_WISH_MS = 300_000

interface Trouble {
  failures: number
  /** How long the last rest was. */
  restMs: number
  restsUntilMs: number
  /** The attempt that is finding out whether it works again. */
  probe: Trial | undefined
}

/**
 * Which channels work. One that fails several times in a row rests; then a single attempt probes it, and it
 * is back in its place, or rests for twice as long. By name, so that it outlives a reading of the
 * configuration.
 */
export class ChannelHealth {
  /** Of channels that failed lately; nothing is kept of the others. */
  readonly #troubles = new Map<string, Trouble>()

  /** Whether a channel should be passed over: it rests, or another attempt is probing it. */
  isResting({ name }: Channel, nowMs: number): boolean {
    if (this.#troubles.size === 0) return false
    const trouble = this.#troubles.get(name)
    return trouble !== undefined && (trouble.restsUntilMs > nowMs || trouble.probe !== undefined)
  }

  /** How many channels rest or are being probed. */
  resting(nowMs: number): number {
    return [...this.#troubles.values()].filter(
      ({ restsUntilMs, probe }) => restsUntilMs > nowMs || probe !== undefined,
    ).length
  }

  /** An attempt is about to be made: the first after a rest is the probe. Hold its trial with `using`. */
  begin({ name }: Channel): Trial {
    const trial = new Trial(this, name)
    const trouble = this.#troubles.size === 0 ? undefined : this.#troubles.get(name)
    if (trouble && trouble.restMs > 0) trouble.probe ??= trial
    return trial
  }

  /** Called by `Trial` alone. */
  works(name: string): void {
    if (this.#troubles.size > 0) this.#troubles.delete(name)
  }

  /** Called by `Trial` alone: another may probe. */
  unknown(name: string, trial: Trial): void {
    const trouble = this.#troubles.size === 0 ? undefined : this.#troubles.get(name)
    if (trouble?.probe === trial) trouble.probe = undefined
  }

  /** Called by `Trial` alone. */
  failed(name: string, trial: Trial, nowMs: number, wishMs: number): void {
    let trouble = this.#troubles.get(name)
    if (!trouble) {
      trouble = { failures: 0, restMs: 0, restsUntilMs: 0, probe: undefined }
      this.#troubles.set(name, trouble)
    }
    trouble.failures += 1
    const isProbe = trouble.probe === trial
    // Attempts that were begun before it was sent to rest add nothing to it.
    if (trouble.restsUntilMs > nowMs && !isProbe) return
    trouble.probe = undefined
    if (isProbe || trouble.failures >= FAILURES) {
      trouble.restMs = Math.min(Math.max(trouble.restMs * 2, FIRST_REST_MS), LONGEST_REST_MS)
      trouble.restsUntilMs = nowMs + trouble.restMs
    }
    if (wishMs > 0) {
      trouble.restMs = Math.max(trouble.restMs, FIRST_REST_MS)
      trouble.restsUntilMs = Math.max(trouble.restsUntilMs, nowMs + Math.min(wishMs, LONGEST_WISH_MS))
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
  works(): void {
    if (this.#ends()) this.#health.works(this.#name)
  }

  /** It did not answer, or with an error of its own. `wishMs`: for how long it asked to be left alone. */
  failed(nowMs: number, wishMs = 0): void {
    if (this.#ends()) this.#health.failed(this.#name, this, nowMs, wishMs)
  }

  /** Ends a trial that told nothing. */
  [Symbol.dispose](): void {
    if (this.#ends()) this.#health.unknown(this.#name, this)
  }

  #ends(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    return true
  }
}
