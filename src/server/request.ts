import type { Headers } from './header-names.ts'
import type { RequestHead } from './request-reader.ts'

/** What takes in a request's body. */
export interface BodyConsumer {
  /** A piece of it; its bytes stay as they are. */
  onChunk(bytes: Buffer): void
  /** That was all. */
  onEnd(): void
  /** It ended before it was complete. */
  onAbort(): void
}

/** What a request may ask of its connection. */
export interface RequestSource {
  /** Bytes that have come on it. */
  readonly bytesRead: number
  readonly remoteAddress: string
  /** Looks anew whether to read on. */
  updateReading(): void
}

/**
 * Bytes of a body that nobody has asked for yet, beyond which its connection is not read; each piece counts
 * for some more.
 */
const MAX_BUFFERED_BYTES = 65_536
const CHUNK_OVERHEAD_BYTES = 256

/** A request whose head has come, and its body as it comes. */
export class Request {
  readonly method: string
  /** The address as it was sent: path and query. */
  readonly url: string
  /** `1.1` or `1.0`. */
  readonly version: string
  readonly headers: Headers
  readonly #source: RequestSource
  #consumer: BodyConsumer | undefined
  readonly #buffered: Buffer[] = []
  #bufferedBytes = 0
  #wantsPause = false
  #state: 'coming' | 'whole' | 'cut' | 'thrown away' = 'coming'

  constructor({ method, url, version, headers }: RequestHead, source: RequestSource) {
    this.method = method
    this.url = url
    this.version = version
    this.headers = headers
    this.#source = source
  }

  /** The address at the other end of its connection. */
  get remoteAddress(): string {
    return this.#source.remoteAddress
  }

  /** Bytes that have come on its connection. */
  get bytesRead(): number {
    return this.#source.bytesRead
  }

  /** Gives the body to somebody: what has come of it now, and the rest as it comes. */
  read(consumer: BodyConsumer): void {
    for (const piece of this.#buffered.splice(0)) consumer.onChunk(piece)
    if (this.#state === 'whole') consumer.onEnd()
    else if (this.#state === 'cut') consumer.onAbort()
    else if (this.#state === 'coming') {
      this.#consumer = consumer
      this.#source.updateReading()
    }
  }

  /** Whether no more of the body should be read for the moment. */
  get isPaused(): boolean {
    if (this.#state !== 'coming') return false
    return this.#consumer ? this.#wantsPause : this.#bufferedBytes > MAX_BUFFERED_BYTES
  }

  /** Has no more of the body read for the moment. */
  pause(): void {
    this.#wantsPause = true
    this.#source.updateReading()
  }

  /** Has it read on. */
  resume(): void {
    this.#wantsPause = false
    this.#source.updateReading()
  }

  /** Throws away what is still to come of the body; whoever took it hears no more. */
  discard(): void {
    this.#consumer = undefined
    this.#buffered.length = 0
    if (this.#state !== 'coming') return
    this.#state = 'thrown away'
    this.#source.updateReading()
  }

  /** Called by its connection alone, with what came of the body. */
  onChunks(pieces: readonly Buffer[]): void {
    for (const piece of pieces) {
      if (this.#state === 'thrown away') return
      if (this.#consumer) this.#consumer.onChunk(piece)
      else {
        this.#buffered.push(piece)
        this.#bufferedBytes += piece.length + CHUNK_OVERHEAD_BYTES
      }
    }
    this.#source.updateReading()
  }

  /** Called by its connection alone: the body is complete, or will never be. */
  onBodyEnd(state: 'whole' | 'cut'): void {
    if (this.#state !== 'coming') return
    this.#state = state
    const taker = this.#consumer
    this.#consumer = undefined
    if (state === 'whole') taker?.onEnd()
    else taker?.onAbort()
  }
}
