/** Status of a response, and those of its headers that the client reads; others are discarded. */
export interface UpstreamResponseHead {
  readonly status: number
  /** Empty if there is none. */
  readonly contentType: string
  readonly retryAfter: string | undefined
  /** Further headers that the connection pools read, by lower-case name; the first of repeated ones. */
  readonly headers: Readonly<Record<string, string>>
}

/** Listener to a response. Exactly one of `onEnd` and `onError` comes last; neither after `cancel`. */
export interface UpstreamResponseListener {
  onHead(head: UpstreamResponseHead): void
  /** Handles a piece of the body; its bytes are not reused. */
  onData(chunk: Buffer): void
  onEnd(): void
  onError(error: TransportError): void
}

/** Request to an upstream, and the control of its response. */
export interface UpstreamRequest {
  /** Whether the request was handed to a connection, so that the upstream may be at work. */
  readonly isSent: boolean
  /** Milliseconds that the request waited for a new connection to open; 0 on one that was open. */
  readonly connectDurationMs: number
  /** Stops reading the response until `resume`. */
  pause(): void
  resume(): void
  /** Cancels the request and closes its connection; the listener is not called again. */
  cancel(): void
}

/**
 * Failure to get a complete response. `message` is a system's error code or a fixed phrase such as
 * `idle time-out`, never text of the upstream.
 */
export class TransportError extends Error {
  /**
   * Whether a reused connection broke before the first byte of the response: most likely the upstream closed
   * it before the request arrived.
   */
  readonly wasReused: boolean
  /** Details for the log, which may hold an upstream's words. */
  readonly detail: string | undefined

  constructor(message: string, wasReused: boolean, detail?: string) {
    super(message)
    this.name = 'TransportError'
    this.wasReused = wasReused
    this.detail = detail
  }
}
