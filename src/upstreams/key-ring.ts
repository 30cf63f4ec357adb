import type { Channel } from '../domain/records/channel.ts'

/** Cooldown of a key that an upstream refused. */
const COOLDOWN_MS = 60_000
/** Maximum cooldown that an upstream's `retry-after` can set. */
const MAX_RETRY_AFTER_MS = 300_000

/** One key of a channel. `value` is empty if the upstream needs no key. */
export interface UpstreamKey {
  readonly value: string
}

interface Ring {
  readonly keys: readonly UpstreamKey[]
  next: number
}

/** Keys of all channels: used in rotation, with a cooldown after a refusal. */
export class KeyRings {
  readonly #rings = new WeakMap<Channel, Ring>()
  // Kept by channel name and key, so that cooldowns survive a reload of the configuration.
  readonly #cooldownEndMs = new Map<string, number>()

  /** Returns the channel's keys in the order in which they should be tried, and advances the rotation. */
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

  /** Reports whether a key was recently refused or has reached its limit. */
  isCoolingDown(channel: Channel, key: UpstreamKey, nowMs: number): boolean {
    if (this.#cooldownEndMs.size === 0) return false
    return (this.#cooldownEndMs.get(nameOf(channel, key)) ?? 0) > nowMs
  }

  /** Number of a channel's keys that were recently refused or have reached their limit. */
  setAside(channel: Channel, nowMs: number): number {
    return channel.keys.filter((value) => this.isCoolingDown(channel, { value }, nowMs)).length
  }

  /** Starts the cooldown of a key that the upstream refused or limited. */
  startCooldown(channel: Channel, key: UpstreamKey, nowMs: number, cooldownMs = COOLDOWN_MS): void {
    this.#cooldownEndMs.set(nameOf(channel, key), nowMs + Math.min(cooldownMs, MAX_RETRY_AFTER_MS))
  }

  /** Ends the cooldown of a key that the upstream accepted. */
  endCooldown(channel: Channel, key: UpstreamKey): void {
    if (this.#cooldownEndMs.size > 0) this.#cooldownEndMs.delete(nameOf(channel, key))
  }
}

function nameOf(channel: Channel, key: UpstreamKey): string {
  return `${channel.name}\0${key.value}`
}
