import { GatewayError } from '../../errors.ts'

/** Bytes of one event that are held at most, where it must be whole to be read. */
export const MAX_EVENT_BYTES = 33_554_432
/** Bytes of one event that nobody counts: streams of small events do not depend on what others hold. */
const UNCOUNTED_EVENT_BYTES = 65_536
/** Bytes of unfinished events that all converted streams together hold at most. */
export const SHARED_EVENT_BYTES = 268_435_456

/**
 * Memory for large events that are not whole yet; what is taken has to be given back. `docs/api.md: Limits`.
 */
export class EventBudget {
  #available: number

  constructor(bytes = SHARED_EVENT_BYTES) {
    this.#available = bytes
  }

  /** Bytes that nobody has taken. */
  get available(): number {
    return this.#available
  }

  /** For an event that grows to so many bytes. Throws `overloaded` where not as many are left. */
  grow(from: number, to: number): void {
    const bytes = countedBytes(to) - countedBytes(from)
    if (bytes > this.#available) {
      throw new GatewayError('overloaded', 'too many large events are being read at once; try again', {
        retryAfter: 5,
      })
    }
    this.#available -= bytes
  }

  /** Gives back what an event of so many bytes took. */
  release(eventBytes: number): void {
    this.#available += countedBytes(eventBytes)
  }
}

function countedBytes(eventBytes: number): number {
  return Math.max(0, eventBytes - UNCOUNTED_EVENT_BYTES)
}
