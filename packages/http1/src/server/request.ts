import type { Headers } from './header-names.ts'
import type { RequestHead } from './request-reader.ts'

/** Callbacks that receive the body of a request. */
export interface BodyConsumer {
  /** Handles a piece of the body. Its bytes are not overwritten later. */
  onChunk(bytes: Buffer): void
  /** Handles the end of a complete body. */
  onEnd(): void
  /** Called if the connection is lost before the body is complete. */
  onAbort(): void
}

/** The connection of a request: the methods that the request uses. */
export interface RequestSource {
  /** Number of bytes received. */
  readonly bytesRead: number
  readonly remoteAddress: string
  /** Pauses or resumes reading, depending on `Request.isPaused`. */
  updateReading(): void
}

/**
 * Maximum number of bytes that are stored of a body without a consumer; reading the connection pauses above
 * it.
 */
const MAX_BUFFERED_BYTES = 65_536
/** Bytes that each stored piece counts for in addition to its length, for the memory of its object. */
export const CHUNK_OVERHEAD_BYTES = 256

/** A request whose head is complete; its body may still be arriving. */
export class Request<Name extends string = string> {
  readonly method: string
  /** Path and query. An application that is mounted below a path may remove that path. */
  url: string
  /** `1.1` or `1.0`. */
  readonly version: string
  readonly headers: Headers<Name>
  /** Whether the client asks to change the protocol of the connection, which `Response.upgrade` does. */
  readonly asksUpgrade: boolean
  readonly #source: RequestSource
  #consumer: BodyConsumer | undefined
  readonly #buffered: Buffer[] = []
  #bufferedBytes = 0
  #wantsPause = false
  #state: 'arriving' | 'complete' | 'aborted' | 'discarded' = 'arriving'

  constructor(
    { method, url, version, headers, asksUpgrade = false }: RequestHead<Name>,
    source: RequestSource,
  ) {
    this.method = method
    this.url = url
    this.version = version
    this.headers = headers
    this.asksUpgrade = asksUpgrade
    this.#source = source
  }

  /** IP address of the client or its proxy. */
  get remoteAddress(): string {
    return this.#source.remoteAddress
  }

  /** Number of bytes received on the connection. */
  get bytesRead(): number {
    return this.#source.bytesRead
  }

  /** Passes the body to `consumer`: first the part that is stored, then the rest as it arrives. */
  read(consumer: BodyConsumer): void {
    for (const piece of this.#buffered.splice(0)) consumer.onChunk(piece)
    if (this.#state === 'complete') consumer.onEnd()
    else if (this.#state === 'aborted') consumer.onAbort()
    else if (this.#state === 'arriving') {
      this.#consumer = consumer
      this.#source.updateReading()
    }
  }

  /** Whether the whole body has arrived. */
  get isComplete(): boolean {
    return this.#state === 'complete'
  }

  /** Returns the stored part of the body, in place of `read` if the body is complete. */
  takeStored(): Buffer[] {
    return this.#buffered.splice(0)
  }

  /** Whether reading the body should pause. */
  get isPaused(): boolean {
    if (this.#state !== 'arriving') return false
    return this.#consumer ? this.#wantsPause : this.#bufferedBytes > MAX_BUFFERED_BYTES
  }

  /** Pauses reading of the body. */
  pause(): void {
    this.#wantsPause = true
    this.#source.updateReading()
  }

  /** Resumes reading of the body. */
  resume(): void {
    this.#wantsPause = false
    this.#source.updateReading()
  }

  /** Discards the rest of the body; its consumer is not called again. */
  discard(): void {
    this.#consumer = undefined
    this.#buffered.length = 0
    if (this.#state !== 'arriving') return
    this.#state = 'discarded'
    this.#source.updateReading()
  }

  /**
   * Passes pieces of the body to the consumer, or stores them until there is one; only the connection calls
   * this.
   */
  onChunks(pieces: readonly Buffer[]): void {
    for (const piece of pieces) {
      if (this.#state === 'discarded') return
      if (this.#consumer) this.#consumer.onChunk(piece)
      else {
        this.#buffered.push(piece)
        this.#bufferedBytes += piece.length + CHUNK_OVERHEAD_BYTES
      }
    }
    this.#source.updateReading()
  }

  /** Notes that the body is complete, or will never be; only the connection calls this. */
  onBodyEnd(state: 'complete' | 'aborted'): void {
    if (this.#state !== 'arriving') return
    this.#state = state
    const taker = this.#consumer
    this.#consumer = undefined
    if (state === 'complete') taker?.onEnd()
    else taker?.onAbort()
  }
}
