import type { UpstreamResponseListener, UpstreamRequest } from './upstream-request.ts'
import type { OutgoingBody } from './outgoing-body.ts'
import type { QueuedRequest } from './event-loop-turn.ts'

/** A request to send, and its timeouts in milliseconds. */
export interface RequestToSend {
  /** Request line, headers and the empty line after them, as a Latin-1 string. */
  readonly head: string
  readonly body: Buffer | OutgoingBody
  readonly connectMs: number
  /** Maximum milliseconds until the first byte of the response. */
  readonly responseMs: number
  readonly idleMs: number
}

/** The connection that carries a request: the methods that the request calls. */
export interface RequestCarrier {
  pause(): void
  resume(): void
  /** Gives up the request and closes the connection. */
  abandon(): void
}

/** A request until its end: first queued until the end of a turn of the event loop, then on a connection. */
export class PendingRequest implements UpstreamRequest, QueuedRequest {
  readonly request: RequestToSend
  readonly listener: UpstreamResponseListener
  /** The connection of the request; undefined while it is queued. */
  carrier: RequestCarrier | undefined
  isSent = false
  connectDurationMs = 0
  isOver = false
  isPaused = false
  /** Whether the request has already waited one turn of the event loop for a connection to become idle. */
  hasWaited = false
  readonly #assignConnection: (call: PendingRequest) => void

  /**
   * `assignConnection` finds a connection for the request. It is called at the end of a turn of the event
   * loop, and again one turn later if the request waits for a connection to become idle.
   */
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
