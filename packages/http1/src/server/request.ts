import type { Headers } from './header-names.ts'
import type { RequestHead } from './request-reader.ts'

/** Consumer of a request's body. */
export interface BodyConsumer {
  /** Handles a piece of the body; its bytes are not reused. */
  onChunk(bytes: Buffer): void
  /** Handles the end of a complete body. */
  onEnd(): void
  /** Handles the loss of the connection before the body was complete. */
  onAbort(): void
}

/** Connection of a request, as the request uses it. */
export interface RequestSource {
  /** Count of bytes received. */
  readonly bytesRead: number
  readonly remoteAddress: string
  /** Pauses or resumes reading, as `Request.isPaused` asks for. */
  updateReading(): void
}

/** Bytes of a body without consumer beyond which its connection is not read. */
const MAX_BUFFERED_BYTES = 65_536
/** Memory beside its bytes that each buffered piece counts for. */
const CHUNK_OVERHEAD_BYTES = 256

/** Request whose head is complete; its body follows as it arrives. */
export class Request<Name extends string = string> {
  readonly method: string
  /** Path and query. */
  readonly url: string
  /** `1.1` or `1.0`. */
  readonly version: string
  readonly headers: Headers<Name>
  readonly #source: RequestSource
  #consumer: BodyConsumer | undefined
  readonly #buffered: Buffer[] = []
  #bufferedBytes = 0
  #wantsPause = false
  #state: 'arriving' | 'complete' | 'aborted' | 'discarded' = 'arriving'

  constructor({ method, url, version, headers }: RequestHead<Name>, source: RequestSource) {
    this.method = method
    this.url = url
    this.version = version
    this.headers = headers
    this.#source = source
  }

  /** Address at the other end of the connection. */
  get remoteAddress(): string {
    return this.#source.remoteAddress
  }

  /** Count of bytes received on the connection. */
  get bytesRead(): number {
    return this.#source.bytesRead
  }

  /** Passes the body to `consumer`: the buffered part now, and the rest as it arrives. */
  read(consumer: BodyConsumer): void {
    for (const piece of this.#buffered.splice(0)) consumer.onChunk(piece)
    if (this.#state === 'complete') consumer.onEnd()
    else if (this.#state === 'aborted') consumer.onAbort()
    else if (this.#state === 'arriving') {
      this.#consumer = consumer
      this.#source.updateReading()
    }
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

  /** Called by the connection alone, with pieces of the body. */
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

  /** Called by the connection alone: the body is complete, or never will be. */
  onBodyEnd(state: 'complete' | 'aborted'): void {
    if (this.#state !== 'arriving') return
    this.#state = state
    const taker = this.#consumer
    this.#consumer = undefined
    if (state === 'complete') taker?.onEnd()
    else taker?.onAbort()
  }
}
