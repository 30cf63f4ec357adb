import type { Channel } from '../domain/channel.ts'

/** How long a channel is passed over for a model that it said it does not have. */
const MISSING_MS = 60_000
/** Pairs of channel and model that are kept; the one that was noted first makes room. */
const MAX_ENTRIES = 1_000

interface Missing {
  readonly channel: Channel
  readonly model: string
  readonly untilMs: number
}

/** A model that a channel is passed over for; both by their names in the configuration. */
export interface MissingModel {
  readonly channel: string
  readonly model: string
}

/**
 * Which models an upstream answered 404 for lately. A channel that was configured anew is asked anew: what
 * was wrong may be its address or its mapping. `docs/operations.md: Channels that fail`.
 */
export class MissingModels {
  // By the channel's name and the model as callers ask for it; the oldest first.
  readonly #missing = new Map<string, Missing>()

  /** Whether a channel should be passed over for a model while another one serves it. */
  isMissing(channel: Channel, model: string, nowMs: number): boolean {
    if (this.#missing.size === 0) return false
    const name = nameOf(channel, model)
    const missing = this.#missing.get(name)
    if (!missing) return false
    if (missing.channel === channel && missing.untilMs > nowMs) return true
    this.#missing.delete(name)
    return false
  }

  /** Notes that the channel answered 404 for the model. */
  add(channel: Channel, model: string, nowMs: number): void {
    const name = nameOf(channel, model)
    this.#missing.delete(name)
    this.#missing.set(name, { channel, model, untilMs: nowMs + MISSING_MS })
    if (this.#missing.size <= MAX_ENTRIES) return
    for (const oldest of this.#missing.keys()) {
      this.#missing.delete(oldest)
      break
    }
  }

  /** All that are missing at the moment. */
  *list(nowMs: number): Iterable<MissingModel> {
    for (const { channel, model, untilMs } of this.#missing.values())
      if (untilMs > nowMs) yield { channel: channel.name, model }
  }

  /** Notes that the channel has the model after all. */
  remove(channel: Channel, model: string): void {
    if (this.#missing.size > 0) this.#missing.delete(nameOf(channel, model))
  }
}

function nameOf({ name }: Channel, model: string): string {
  return `${name}\0${model}`
}
