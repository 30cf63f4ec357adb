import { GatewayError } from '../errors.ts'

/** Bytes of one event that are held at most, where it must be whole to be read. */
export const MAX_EVENT_BYTES = 33_554_432
/** Bytes of unfinished events that all converted streams together hold at most. */
export const SHARED_EVENT_BYTES = 268_435_456

/** Memory for events that are not whole yet; what is taken has to be given back. `docs/api.md: Limits`. */
export class EventBudget {
  #free: number

  constructor(bytes = SHARED_EVENT_BYTES) {
    this.#free = bytes
  }

  /** Bytes that nobody has taken. */
  get free(): number {
    return this.#free
  }

  /** Throws `overloaded` where not as many bytes are left. */
  take(bytes: number): void {
    if (bytes > this.#free) {
      throw new GatewayError('overloaded', 'too many large events are being read at once; try again', {
        retryAfter: 5,
      })
    }
    this.#free -= bytes
  }

  give(bytes: number): void {
    this.#free += bytes
  }
}
