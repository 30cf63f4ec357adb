import type { Answer, Exchange } from '../upstream-request.ts'
import type { Departing } from './turn-end.ts'

/** A request as it goes out. */
export interface WireRequest {
  /** Request line and headers, to the empty line; one byte a character. */
  readonly head: string
  readonly body: Buffer
  readonly connectMs: number
  readonly firstByteMs: number
  readonly idleMs: number
}

/** What carries a call, as far as the call asks for it. */
export interface Carrier {
  pause(): void
  resume(): void
  /** Gives the call up. */
  abandon(): void
}

/** A call, until it is over: it waits for the end of a turn of the event loop, and then has a connection. */
export class CallUnderWay implements Exchange, Departing {
  readonly request: WireRequest
  readonly answer: Answer
  /** What carries it, once it has departed. */
  carrier: Carrier | undefined
  begun = false
  isOver = false
  isPaused = false
  /** It has waited once for a connection that was about to be free. */
  hasWaited = false
  readonly #leave: (call: CallUnderWay) => void

  /** `leave` finds a carrier for it; called once for each time that it was told to depart soon. */
  constructor(request: WireRequest, answer: Answer, leave: (call: CallUnderWay) => void) {
    this.request = request
    this.answer = answer
    this.#leave = leave
  }

  depart(): void {
    this.#leave(this)
  }

  pause(): void {
    if (this.isOver) return
    this.isPaused = true
    this.carrier?.pause()
  }

  resume(): void {
    if (this.isOver) return
    this.isPaused = false
    this.carrier?.resume()
  }

  cancel(): void {
    if (this.isOver) return
    this.isOver = true
    this.carrier?.abandon()
  }
}
