/** The head of an answer, as far as anybody here asks for it. */
export interface UpstreamResponseHead {
  readonly status: number
  /** Empty where there is none. */
  readonly contentType: string
  readonly retryAfter: string | undefined
}

/** Hears what an upstream answers. Exactly one of `ended` and `failed` comes last; neither after `cancel`. */
export interface UpstreamResponseListener {
  onHead(head: UpstreamResponseHead): void
  /** The bytes are the hearer's to keep. */
  onData(chunk: Buffer): void
  onEnd(): void
  onError(error: TransportError): void
}

/** A call under way. */
export interface UpstreamRequest {
  /** A connection was found, and the request is being sent: the upstream may be at work. */
  readonly isSent: boolean
  /** Stops reading until `resume`. */
  pause(): void
  resume(): void
  /** Gives the call up and closes its connection; nothing is heard of it afterwards. */
  cancel(): void
}

/**
 * No answer, or none to its end; `message` says why in a few words without anybody's text: a system's code,
 * `idle time-out`.
 */
export class TransportError extends Error {
  /**
   * The connection was kept from an earlier call and broke before a byte of the answer came: it most likely
   * was closed before the request arrived.
   */
  readonly wasReused: boolean

  constructor(message: string, wasReused: boolean) {
    super(message)
    this.name = 'TransportError'
    this.wasReused = wasReused
  }
}
