import { GatewayError } from '../../errors.ts'
import type { SocketTimes } from './socket-services.ts'

/** How long a socket lives, and whether its client is still there. */
export class Lifetimes {
  readonly #times: SocketTimes
  readonly #openedMs: number
  #usedMs: number
  #heardMs: number
  #pingedMs: number

  constructor(times: SocketTimes, nowMs: number) {
    this.#times = times
    this.#openedMs = nowMs
    this.#usedMs = nowMs
    this.#heardMs = nowMs
    this.#pingedMs = nowMs
  }

  /** Notes that a message came, or that a turn has ended. */
  used(nowMs: number): void {
    this.#usedMs = nowMs
  }

  /** Notes that bytes came, or that they are read again. */
  heard(nowMs: number): void {
    this.#heardMs = nowMs
  }

  /** Whether nothing came for two pings. */
  isGone(nowMs: number): boolean {
    return nowMs - this.#heardMs > 2 * this.#times.ping && this.#pingedMs > this.#heardMs
  }

  /** Whether it is time for a ping, which is then sent. */
  takePing(nowMs: number): boolean {
    if (nowMs - this.#pingedMs < this.#times.ping) return false
    this.#pingedMs = nowMs
    return true
  }

  isIdle(nowMs: number): boolean {
    return nowMs - this.#usedMs >= this.#times.idle
  }

  /** The error that ends a socket that has reached its age; undefined before. */
  tooOld(nowMs: number): GatewayError | undefined {
    const { age } = this.#times
    if (nowMs - this.#openedMs < age) return undefined
    return new GatewayError(
      'websocket_connection_limit_reached',
      `this socket has reached its maximum age of ${Math.round(age / 60_000)} minutes; open another one`,
    )
  }
}
