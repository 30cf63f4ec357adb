import type { UpstreamResponseListener, UpstreamRequest } from '../upstream-request.ts'
import type { QueuedRequest } from './turn-end.ts'

/** A request as it goes out. */
export interface RequestToSend {
  /** Request line and headers, to the empty line; one byte a character. */
  readonly head: string
  readonly body: Buffer
  readonly connectMs: number
  readonly firstByteMs: number
  readonly idleMs: number
}

/** What carries a call, as far as the call asks for it. */
export interface RequestCarrier {
  pause(): void
  resume(): void
  /** Gives the call up. */
  abandon(): void
}

/** A call, until it is over: it waits for the end of a turn of the event loop, and then has a connection. */
export class PendingRequest implements UpstreamRequest, QueuedRequest {
  readonly request: RequestToSend
  readonly listener: UpstreamResponseListener
  /** What carries it, once it has departed. */
  carrier: RequestCarrier | undefined
  isSent = false
  isOver = false
  isPaused = false
  /** It has waited once for a connection that was about to be free. */
  hasWaited = false
  readonly #assignConnection: (call: PendingRequest) => void

  /** `leave` finds a carrier for it; called once for each time that it was told to depart soon. */
  constructor(request: RequestToSend, listener: UpstreamResponseListener, assignConnection: (call: PendingRequest) => void) {
    this.request = request
    this.listener = listener
    this.#assignConnection = assignConnection
  }

  send(): void {
    this.#assignConnection(this)
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
