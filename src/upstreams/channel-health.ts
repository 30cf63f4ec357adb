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
  /** One call is finding out whether it works again. */
  probing: boolean
}

/**
 * Which channels work. One that fails several times in a row rests; then a single call probes it, and it is back in its place,
 * or rests for twice as long. By name, so that it outlives a reading of the configuration.
 */
export class ChannelHealth {
  /** Of channels that failed lately; nothing is kept of the others. */
  readonly #troubles = new Map<string, Trouble>()

  /** Whether a channel should be passed over: it rests, or another call is probing it. */
  isResting({ name }: Channel, nowMs: number): boolean {
    if (this.#troubles.size === 0) return false
    const trouble = this.#troubles.get(name)
    return trouble !== undefined && (trouble.restsUntilMs > nowMs || trouble.probing)
  }

  /** How many channels rest or are being probed. */
  resting(nowMs: number): number {
    return [...this.#troubles.values()].filter(({ restsUntilMs, probing }) => restsUntilMs > nowMs || probing)
      .length
  }

  /** A call is about to be sent: the first after a rest is the probe. */
  begin({ name }: Channel): void {
    if (this.#troubles.size === 0) return
    const trouble = this.#troubles.get(name)
    if (trouble && trouble.restMs > 0) trouble.probing = true
  }

  /** It answered. */
  works({ name }: Channel): void {
    if (this.#troubles.size > 0) this.#troubles.delete(name)
  }

  /** The call ended without telling whether it works: another may probe. */
  unknown({ name }: Channel): void {
    const trouble = this.#troubles.get(name)
    if (trouble) trouble.probing = false
  }

  /** It did not answer, or with an error of its own. `wishMs`: for how long it asked to be left alone. */
  failed({ name }: Channel, nowMs: number, wishMs = 0): void {
    let trouble = this.#troubles.get(name)
    if (!trouble) {
      trouble = { failures: 0, restMs: 0, restsUntilMs: 0, probing: false }
      this.#troubles.set(name, trouble)
    }
    trouble.failures += 1
    const isProbe = trouble.probing
    trouble.probing = false
    // Calls that were sent before it was sent to rest add nothing to it.
    if (trouble.restsUntilMs > nowMs && !isProbe) return
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
