/** Status of a response, and the headers that were requested to be read; other headers are discarded. */
export interface UpstreamResponseHead {
  readonly status: number
  /** Value of the header `content-type`; empty if the response has none. */
  readonly contentType: string
  readonly retryAfter: string | undefined
  /**
   * Headers that the option `readHeaders` names, by lower-case name. If a header is repeated, the first value
   * counts.
   */
  readonly headers: Readonly<Record<string, string>>
}

/** Callbacks for a response. The last call is either `onEnd` or `onError`; after `cancel` there is none. */
export interface UpstreamResponseListener {
  onHead(head: UpstreamResponseHead): void
  /** Handles a piece of the body. Its bytes are not overwritten later. */
  onData(chunk: Buffer): void
  onEnd(): void
  onError(error: TransportError): void
}

/** A request to an upstream, with methods that control its response. */
export interface UpstreamRequest {
  /** Whether the request was given to a connection, so that the upstream may have begun to process it. */
  readonly isSent: boolean
  /** Milliseconds that the request waited for a new connection; 0 if the connection was already open. */
  readonly connectDurationMs: number
  /** Whether the response is read no further, or was before its end, because there is no memory for it. Absent: never. */
  readonly isShort?: boolean
  /** Stops reading the response until `resume`. */
  pause(): void
  resume(): void
  /** Cancels the request and closes its connection; the listener is not called again. */
  cancel(): void
}

/**
 * The upstream did not send a complete response. `message` is an error code of the system or a fixed phrase
 * such as `idle time-out`, and never contains text from the upstream.
 */
export class TransportError extends Error {
  /**
   * Whether a reused connection broke soon after the request was sent, and before the first byte of the
   * response: most likely the upstream closed it before the request arrived.
   */
  readonly wasReused: boolean
  /** Details for the log; they may contain text from the upstream. */
  readonly detail: string | undefined

  constructor(message: string, wasReused: boolean, detail?: string) {
    super(message)
    this.name = 'TransportError'
    this.wasReused = wasReused
    this.detail = detail
  }
}
