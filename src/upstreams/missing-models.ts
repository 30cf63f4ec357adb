import type { Channel } from '../domain/records/channel.ts'

/** Milliseconds for which a channel is skipped for a model after a 404. */
const MISSING_MS = 60_000
/** Maximum number of remembered pairs of channel and model; beyond it, the oldest pair is removed. */
const MAX_ENTRIES = 1_000

interface Missing {
  readonly channel: Channel
  readonly model: string
  readonly untilMs: number
}

/** A channel that is skipped for a model. Both are named as in the configuration. */
export interface MissingModel {
  readonly channel: string
  readonly model: string
}

/**
 * Remembers models for which an upstream recently responded with 404. If the configuration of a channel
 * changes, the channel is tried again, because its address or model mapping may have been wrong.
 * `docs/operations.md: Channels that fail`.
 */
export class MissingModels {
  // Remembered models by the channel's name and the client's name of the model, the oldest first.
  readonly #missing = new Map<string, Missing>()

  /** Whether a channel should be skipped for a model, if another channel serves the model. */
  isMissing(channel: Channel, model: string, nowMs: number): boolean {
    if (this.#missing.size === 0) return false
    const name = nameOf(channel, model)
    const missing = this.#missing.get(name)
    if (!missing) return false
    if (missing.channel === channel && missing.untilMs > nowMs) return true
    this.#missing.delete(name)
    return false
  }

  /** Records that the channel returned 404 for the model. */
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

  /** Yields the channels that are skipped at present, each with its model. */
  *list(nowMs: number): Iterable<MissingModel> {
    for (const { channel, model, untilMs } of this.#missing.values())
      if (untilMs > nowMs) yield { channel: channel.name, model }
  }

  /** Records that the channel does have the model, so that it is no longer skipped. */
  remove(channel: Channel, model: string): void {
    if (this.#missing.size > 0) this.#missing.delete(nameOf(channel, model))
  }
}

function nameOf({ name }: Channel, model: string): string {
  return `${name}\0${model}`
}
