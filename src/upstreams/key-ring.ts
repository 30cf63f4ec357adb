import type { Channel } from '../domain/records/channel.ts'
import { MAX_RETRY_AFTER_MS } from './retry-after.ts'

/** Milliseconds for which a key is not used after the upstream refused it. */
const COOLDOWN_MS = 60_000

/** A key of a channel; `value` is empty if the upstream needs none. */
export interface UpstreamKey {
  readonly value: string
}

/** A time for which an API key is not used, and why. */
export interface Cooldown {
  /** End of the cooldown, in milliseconds of a monotonic clock. */
  readonly endMs: number
  /** When the key first failed, in Unix milliseconds. */
  readonly sinceMs: number
  /** The cause of the failure, as one of a few fixed words that the metrics also use. */
  readonly cause: string
}

/**
 * A cooldown of an API key that has started or ended on this node, to be sent to the other nodes. Undefined
 * `cooldown` means that it has ended.
 */
export interface CooldownChange {
  readonly channel: string
  readonly key: string
  readonly cooldown: Cooldown | undefined
}

interface StartedCooldown extends Cooldown {
  /** Start of the cooldown, in milliseconds of a monotonic clock. */
  readonly startedMs: number
}

interface Ring {
  readonly keys: readonly UpstreamKey[]
  next: number
}

/**
 * The API keys of all channels. They are used in turn; a key that the upstream refused is not used for some
 * time (its cooldown).
 */
export class KeyRings {
  readonly #rings = new WeakMap<Channel, Ring>()
  // Cooldowns by channel name and key, so that they survive a reload of the configuration.
  readonly #cooldowns = new Map<string, StartedCooldown>()
  /** Called when a cooldown starts or ends; undefined if there are no other nodes. */
  onChange: ((change: CooldownChange) => void) | undefined

  /**
   * Returns a channel's keys in the order in which they should be tried. The next call starts with the next
   * key.
   */
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

  /** Whether a key is not used for now, because it was recently refused or has reached its rate limit. */
  isCoolingDown(channel: Channel, key: UpstreamKey, nowMs: number): boolean {
    if (this.#cooldowns.size === 0) return false
    return (this.#cooldowns.get(nameOf(channel, key))?.endMs ?? 0) > nowMs
  }

  /**
   * Number of a channel's keys that are not used for now, because they were recently refused or have reached
   * their rate limit.
   */
  setAside(channel: Pick<Channel, 'name' | 'keys'>, nowMs: number): number {
    return channel.keys.filter((value) => this.cooldownOf(channel.name, value, nowMs)).length
  }

  /** The cooldown of a key; undefined if it has none. */
  cooldownOf(name: string, value: string, nowMs: number): Cooldown | undefined {
    const cooldown = this.#cooldowns.get(nameOf({ name }, { value }))
    return cooldown && cooldown.endMs > nowMs ? cooldown : undefined
  }

  /** Starts the cooldown of a key that the upstream refused, or whose rate limit is reached. */
  startCooldown(
    channel: Pick<Channel, 'name'>,
    key: UpstreamKey,
    nowMs: number,
    { cause, cooldownMs = COOLDOWN_MS }: { readonly cause: string; readonly cooldownMs?: number | undefined },
  ): void {
    const sinceMs = this.cooldownOf(channel.name, key.value, nowMs)?.sinceMs ?? Date.now()
    const endMs = nowMs + Math.min(cooldownMs, MAX_RETRY_AFTER_MS)
    const cooldown = { endMs, sinceMs, cause, startedMs: nowMs }
    this.#cooldowns.set(nameOf(channel, key), cooldown)
    this.onChange?.({ channel: channel.name, key: key.value, cooldown })
  }

  /**
   * Ends the cooldown of a key that the upstream accepted. `askedMs` is when the request was sent, on the
   * monotonic clock: a response to a request from before the cooldown does not end it.
   */
  endCooldown(
    channel: Pick<Channel, 'name'>,
    key: UpstreamKey,
    askedMs: number = Number.POSITIVE_INFINITY,
  ): void {
    if (this.#cooldowns.size === 0) return
    const name = nameOf(channel, key)
    const cooldown = this.#cooldowns.get(name)
    if (!cooldown || cooldown.startedMs > askedMs) return
    this.#cooldowns.delete(name)
    this.onChange?.({ channel: channel.name, key: key.value, cooldown: undefined })
  }

  /**
   * Applies a change that another node has sent. A cooldown from another node is limited to the same maximum
   * as one that starts on this node.
   */
  apply({ channel, key, cooldown }: CooldownChange, nowMs: number): void {
    const name = nameOf({ name: channel }, { value: key })
    if (!cooldown) this.#cooldowns.delete(name)
    else
      this.#cooldowns.set(name, {
        ...cooldown,
        endMs: Math.min(cooldown.endMs, nowMs + MAX_RETRY_AFTER_MS),
        startedMs: nowMs,
      })
  }

  /** Yields all cooldowns that have not ended. */
  *list(nowMs: number): Iterable<CooldownChange> {
    for (const [name, cooldown] of this.#cooldowns) {
      const [channel = '', key = ''] = name.split('\0')
      if (cooldown.endMs > nowMs) yield { channel, key, cooldown }
    }
  }
}

function nameOf(channel: Pick<Channel, 'name'>, key: UpstreamKey): string {
  return `${channel.name}\0${key.value}`
}
