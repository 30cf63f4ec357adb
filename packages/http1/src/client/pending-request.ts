import type { UpstreamResponseListener, UpstreamRequest } from './upstream-request.ts'
import type { OutgoingBody } from './outgoing-body.ts'
import type { QueuedRequest } from './turn-end.ts'

/** Bytes of a request, and its timeouts. */
export interface RequestToSend {
  /** Request line and headers, with the empty line; Latin-1. */
  readonly head: string
  readonly body: Buffer | OutgoingBody
  readonly connectMs: number
  /** Maximum time to the first byte of the response. */
  readonly responseMs: number
  readonly idleMs: number
}

/** Connection that carries a request, as the request uses it. */
export interface RequestCarrier {
  pause(): void
  resume(): void
  /** Gives up the request. */
  abandon(): void
}

/** Request until it is over: queued until the end of a turn of the event loop, then on a connection. */
export class PendingRequest implements UpstreamRequest, QueuedRequest {
  readonly request: RequestToSend
  readonly listener: UpstreamResponseListener
  /** Connection of the request, once it has one. */
  carrier: RequestCarrier | undefined
  isSent = false
  connectDurationMs = 0
  isOver = false
  isPaused = false
  /** Whether the request has already waited a turn for a connection to become idle. */
  hasWaited = false
  readonly #assignConnection: (call: PendingRequest) => void

  /** `assignConnection` is called once for each `sendAtTurnEnd`. */
  constructor(
    request: RequestToSend,
    listener: UpstreamResponseListener,
    assignConnection: (call: PendingRequest) => void,
  ) {
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
