import type { Channel } from '../domain/channel.ts'

/** How long a key that an upstream refused is left alone before it is tried again. */
const COOLDOWN_MS = 60_000
/** No upstream's word sets one aside for longer. */
const MAX_RETRY_AFTER_MS = 300_000

/** One credential of a channel; `value` is empty for an upstream that asks for none. */
export interface UpstreamKey {
  readonly value: string
}

interface Ring {
  readonly keys: readonly UpstreamKey[]
  next: number
}

/** The keys of all channels: used in turn, and set aside for a while once refused. */
export class KeyRings {
  readonly #rings = new WeakMap<Channel, Ring>()
  // By channel name and key, so that it outlives a reading of the configuration.
  readonly #cooldownEndMs = new Map<string, number>()

  /** The channel's keys in the order in which to try them now. */
  rotated(channel: Channel): readonly UpstreamKey[] {
    let ring = this.#rings.get(channel)
    if (!ring) {
      const values = channel.keys.length === 0 ? [''] : channel.keys
      ring = { keys: values.map((value) => ({ value })), next: 0 }
      this.#rings.set(channel, ring)
    }
    const { keys, next } = ring
    if (keys.length === 1) return keys
    ring.next = (next + 1) % keys.length
    return next === 0 ? keys : [...keys.slice(next), ...keys.slice(0, next)]
  }

  /** Whether a key was refused a short while ago, or is at its limit. */
  isCoolingDown(channel: Channel, key: UpstreamKey, nowMs: number): boolean {
    if (this.#cooldownEndMs.size === 0) return false
    return (this.#cooldownEndMs.get(nameOf(channel, key)) ?? 0) > nowMs
  }

  /** Leaves a key alone that the upstream refused, or for as long as the upstream asks for. */
  startCooldown(channel: Channel, key: UpstreamKey, nowMs: number, cooldownMs = COOLDOWN_MS): void {
    this.#cooldownEndMs.set(nameOf(channel, key), nowMs + Math.min(cooldownMs, MAX_RETRY_AFTER_MS))
  }

  /** Takes a key back that was not refused any more. */
  endCooldown(channel: Channel, key: UpstreamKey): void {
    if (this.#cooldownEndMs.size > 0) this.#cooldownEndMs.delete(nameOf(channel, key))
  }
}

function nameOf(channel: Channel, key: UpstreamKey): string {
  return `${channel.name}\0${key.value}`
}
