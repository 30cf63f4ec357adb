import type { Channel } from '../domain/records/channel.ts'
import { MAX_RETRY_AFTER_MS } from './retry-after.ts'

/** Cooldown of a key that an upstream refused. */
const COOLDOWN_MS = 60_000

/** One key of a channel. `value` is empty if the upstream needs no key. */
export interface UpstreamKey {
  readonly value: string
}

/** Why a key is not used for some time. */
export interface Cooldown {
  /** On the monotonic clock. */
  readonly endMs: number
  /** Unix milliseconds. */
  readonly sinceMs: number
  /** The cause in a few fixed words, as in the metrics. */
  readonly cause: string
}

interface Ring {
  readonly keys: readonly UpstreamKey[]
  next: number
}

/** Keys of all channels: used in rotation, with a cooldown after a refusal. */
export class KeyRings {
  readonly #rings = new WeakMap<Channel, Ring>()
  // Kept by channel name and key, so that cooldowns survive a reload of the configuration.
  readonly #cooldowns = new Map<string, Cooldown>()

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
    if (this.#cooldowns.size === 0) return false
    return (this.#cooldowns.get(nameOf(channel, key))?.endMs ?? 0) > nowMs
  }

  /** Number of a channel's keys that were recently refused or have reached their limit. */
  setAside(channel: Pick<Channel, 'name' | 'keys'>, nowMs: number): number {
    return channel.keys.filter((value) => this.cooldownOf(channel.name, value, nowMs)).length
  }

  /** The cooldown of a key; undefined without one. */
  cooldownOf(name: string, value: string, nowMs: number): Cooldown | undefined {
    const cooldown = this.#cooldowns.get(nameOf({ name }, { value }))
    return cooldown && cooldown.endMs > nowMs ? cooldown : undefined
  }

  /** Starts the cooldown of a key that the upstream refused or limited. */
  startCooldown(
    channel: Pick<Channel, 'name'>,
    key: UpstreamKey,
    nowMs: number,
    { cause, cooldownMs = COOLDOWN_MS }: { readonly cause: string; readonly cooldownMs?: number | undefined },
  ): void {
    const sinceMs = this.cooldownOf(channel.name, key.value, nowMs)?.sinceMs ?? Date.now()
    const endMs = nowMs + Math.min(cooldownMs, MAX_RETRY_AFTER_MS)
    this.#cooldowns.set(nameOf(channel, key), { endMs, sinceMs, cause })
  }

  /** Ends the cooldown of a key that the upstream accepted. */
  endCooldown(channel: Pick<Channel, 'name'>, key: UpstreamKey): void {
    if (this.#cooldowns.size > 0) this.#cooldowns.delete(nameOf(channel, key))
  }
}

function nameOf(channel: Pick<Channel, 'name'>, key: UpstreamKey): string {
  return `${channel.name}\0${key.value}`
}
