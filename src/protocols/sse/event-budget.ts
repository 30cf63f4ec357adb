import { GatewayError } from '../../errors.ts'

/** Most bytes held of one event that must be complete to be read. */
export const MAX_EVENT_BYTES = 33_554_432
/** Bytes per event that are not counted, so that streams of small events never fail for lack of budget. */
const UNCOUNTED_EVENT_BYTES = 65_536
/** Most bytes of incomplete events, over all converted streams. */
export const SHARED_EVENT_BYTES = 268_435_456

/** Budget for the memory of incomplete large events; taken bytes must be released. `docs/api.md: Limits`. */
export class EventBudget {
  #available: number

  constructor(bytes = SHARED_EVENT_BYTES) {
    this.#available = bytes
  }

  /** Bytes left. */
  get available(): number {
    return this.#available
  }

  /** Takes bytes for an event that grows to `to`. Throws `overloaded` if too few are left. */
  grow(from: number, to: number): void {
    const bytes = countedBytes(to) - countedBytes(from)
    if (bytes > this.#available) {
      throw new GatewayError('overloaded', 'too many large events are being read at once; try again', {
        retryAfter: 5,
      })
    }
    this.#available -= bytes
  }

  /** Returns the bytes that an event of this size took. */
  release(eventBytes: number): void {
    this.#available += countedBytes(eventBytes)
  }
}

function countedBytes(eventBytes: number): number {
  return Math.max(0, eventBytes - UNCOUNTED_EVENT_BYTES)
}
