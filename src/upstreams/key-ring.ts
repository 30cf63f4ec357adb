import type { Channel } from '../domain/channel.ts'

/** How long a key that an upstream refused is left alone before it is tried again. */
const SET_ASIDE_MS = 60_000

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
  readonly #refusedUntil = new Map<string, number>()

  /** The channel's keys in the order in which to try them now. */
  inTurn(channel: Channel): readonly UpstreamKey[] {
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

  /** Whether a key was refused a short while ago. */
  isSetAside(channel: Channel, key: UpstreamKey, nowMs: number): boolean {
    if (this.#refusedUntil.size === 0) return false
    return (this.#refusedUntil.get(nameOf(channel, key)) ?? 0) > nowMs
  }

  /** Leaves a key alone that the upstream refused. */
  setAside(channel: Channel, key: UpstreamKey, nowMs: number): void {
    this.#refusedUntil.set(nameOf(channel, key), nowMs + SET_ASIDE_MS)
  }

  /** Takes a key back that was not refused any more. */
  restore(channel: Channel, key: UpstreamKey): void {
    if (this.#refusedUntil.size > 0) this.#refusedUntil.delete(nameOf(channel, key))
  }
}

function nameOf(channel: Channel, key: UpstreamKey): string {
  return `${channel.name}\0${key.value}`
}
