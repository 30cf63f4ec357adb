import type { Channel } from '../domain/records/channel.ts'

/** How long a channel is passed over for a model after a 404. */
const MISSING_MS = 60_000
/** Most entries that are kept; the oldest is evicted. */
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
 * Models that an upstream answered 404 for recently. A reconfigured channel is asked again, as its address or
 * mapping may have been the cause. `docs/operations.md: Channels that fail`.
 */
export class MissingModels {
  // Keyed by the channel's name and the model as clients name it; the oldest first.
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

  /** Records that the channel answered 404 for the model. */
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

  /** Lists the pairs that are passed over now. */
  *list(nowMs: number): Iterable<MissingModel> {
    for (const { channel, model, untilMs } of this.#missing.values())
      if (untilMs > nowMs) yield { channel: channel.name, model }
  }

  /** Records that the channel has the model after all. */
  remove(channel: Channel, model: string): void {
    if (this.#missing.size > 0) this.#missing.delete(nameOf(channel, model))
  }
}

function nameOf({ name }: Channel, model: string): string {
  return `${name}\0${model}`
}
