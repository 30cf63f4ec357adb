import type { Tap } from './dialects/dialect.ts'

/**
 * Time without an event after which the client is told that the answer goes on. Clients end a stream that is
 * silent for some minutes, proxies one that is silent for one, and comments are no events to most clients.
 */
const MAX_SILENCE_MS = 15_000

/** Events that keep a stream alive while its upstream takes its time; `docs/api.md: Events`. */
export class KeepAlive {
  #events = -1
  #silentSince = 0

  /** The event to send, if one is due. To be called once a second. */
  frameFor(tap: Tap, nowMs: number): Buffer | undefined {
    if (tap.sentEvents !== this.#events) {
      this.#events = tap.sentEvents
      this.#silentSince = nowMs
      return undefined
    }
    if (nowMs - this.#silentSince < MAX_SILENCE_MS) return undefined
    this.#silentSince = nowMs
    return tap.keepAliveFrame()
  }
}
