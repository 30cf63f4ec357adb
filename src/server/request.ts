import type { Headers } from './header-names.ts'
import type { RequestHead } from './request-reader.ts'

/** What takes in a request's body. */
export interface BodyTaker {
  /** A piece of it; its bytes stay as they are. */
  piece(bytes: Buffer): void
  /** That was all. */
  whole(): void
  /** It ended before it was complete. */
  cut(): void
}

/** What a request may ask of its connection. */
export interface RequestSource {
  /** Bytes that have come on it. */
  readonly bytesRead: number
  readonly remoteAddress: string
  /** Looks anew whether to read on. */
  flow(): void
}

/**
 * Bytes of a body that nobody has asked for yet, beyond which its connection is not read; each piece counts
 * for some more.
 */
const UNASKED = 65_536
const EACH_PIECE = 256

/** A request whose head has come, and its body as it comes. */
export class Request {
  readonly method: string
  /** The address as it was sent: path and query. */
  readonly url: string
  /** `1.1` or `1.0`. */
  readonly version: string
  readonly headers: Headers
  readonly #source: RequestSource
  #taker: BodyTaker | undefined
  readonly #unasked: Buffer[] = []
  #unaskedBytes = 0
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
  read(taker: BodyTaker): void {
    for (const piece of this.#unasked.splice(0)) taker.piece(piece)
    if (this.#state === 'whole') taker.whole()
    else if (this.#state === 'cut') taker.cut()
    else if (this.#state === 'coming') {
      this.#taker = taker
      this.#source.flow()
    }
  }

  /** Whether no more of the body should be read for the moment. */
  get isPaused(): boolean {
    if (this.#state !== 'coming') return false
    return this.#taker ? this.#wantsPause : this.#unaskedBytes > UNASKED
  }

  /** Has no more of the body read for the moment. */
  pause(): void {
    this.#wantsPause = true
    this.#source.flow()
  }

  /** Has it read on. */
  resume(): void {
    this.#wantsPause = false
    this.#source.flow()
  }

  /** Throws away what is still to come of the body; whoever took it hears no more. */
  throwAway(): void {
    this.#taker = undefined
    this.#unasked.length = 0
    if (this.#state !== 'coming') return
    this.#state = 'thrown away'
    this.#source.flow()
  }

  /** Called by its connection alone, with what came of the body. */
  received(pieces: readonly Buffer[]): void {
    for (const piece of pieces) {
      if (this.#state === 'thrown away') return
      if (this.#taker) this.#taker.piece(piece)
      else {
        this.#unasked.push(piece)
        this.#unaskedBytes += piece.length + EACH_PIECE
      }
    }
    this.#source.flow()
  }

  /** Called by its connection alone: the body is complete, or will never be. */
  ended(state: 'whole' | 'cut'): void {
    if (this.#state !== 'coming') return
    this.#state = state
    const taker = this.#taker
    this.#taker = undefined
    if (state === 'whole') taker?.whole()
    else taker?.cut()
  }
}
