import type { Channel } from '../domain/records/channel.ts'
import { AccountRests } from './account-rests.ts'

/** A key of a channel; `value` is empty if the upstream needs none. */
export interface UpstreamKey {
  readonly value: string
}

interface Ring {
  readonly keys: readonly UpstreamKey[]
  next: number
}

/** The API keys of all channels, which are used in turn, and the rests of those that have failed. */
export class KeyRings {
  readonly #rings = new WeakMap<Channel, Ring>()
  /** Rests of the keys, for each upstream model or for all. */
  readonly rests = new AccountRests()

  /**
   * Returns a channel's keys in the order in which they should be tried. The next call starts with the next
   * key.
   */
  rotated(channel: Channel): readonly UpstreamKey[] {
    const ring = this.#ringOf(channel)
    const { keys, next } = ring
    if (keys.length === 1) return keys
    ring.next = (next + 1) % keys.length
    return next === 0 ? keys : [...keys.slice(next), ...keys.slice(0, next)]
  }

  /** A channel's keys; a single one without a value if the upstream needs none. */
  keysOf(channel: Channel): readonly UpstreamKey[] {
    return this.#ringOf(channel).keys
  }

  #ringOf(channel: Channel): Ring {
    let ring = this.#rings.get(channel)
    if (!ring) {
      const values = channel.keys.length === 0 ? [''] : channel.keys
      ring = { keys: values.map((value) => ({ value })), next: 0 }
      this.#rings.set(channel, ring)
    }
    return ring
  }
}
