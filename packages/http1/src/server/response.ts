import { IDLE_TIMEOUT_SECONDS } from './client-timeouts.ts'
import type { Headers } from './header-names.ts'
import { headerLine, responseHead, type ResponseHeaders } from './response-head.ts'
import type { UpgradedConnection } from './upgraded-connection.ts'

/** The connection of a response: the methods that the response uses. */
export interface ResponseSink {
  /** Whether a response can still be written. */
  readonly isOpen: boolean
  /** Sends bytes; returns false if the caller should wait until they are sent before it writes more. */
  send(bytes: Buffer | string): boolean
  /** Sends several pieces in one write; returns false if the caller should wait, as for `send`. */
  sendParts(parts: readonly (Buffer | string)[]): boolean
  /** Notes that the end of the response is written. */
  responseEnded(): void
  /** Notes that a request to an upstream is about to be sent. */
  needsUpstream(): void
  /** Notes that the response continues until its client leaves; absent where there is no connection. */
  lastsUntilClientLeaves?(): void
  /**
   * Ends HTTP on the connection, and returns its bytes; undefined if the client has left or its request is not
   * complete. Absent where there is no connection.
   */
  upgrade?(): UpgradedConnection | undefined
  destroy(): void
}

/** The properties of a request that determine the form of its response. */
export interface RequestTraits {
  readonly method: string
  readonly version: string
  /** Whether the client may send another request on this connection. */
  readonly keepAlive: boolean
  readonly headers: Headers
}

/**
 * Maximum number of bytes of a piece that is copied together with its framing: up to this size, copying costs
 * less than writing several buffers.
 */
const MAX_COALESCED_BYTES = 16_384
const LAST_CHUNK = Buffer.from('0\r\n\r\n')
const CRLF = '\r\n'
/** The end of a chunk, followed by the last chunk. */
const LAST_CHUNK_AFTER = '\r\n0\r\n\r\n'

/** A head that is sent before it is known how the response goes on. Its status is 200. */
export interface EarlyHead {
  readonly headers: ResponseHeaders
  /** Writes the body of a response with another status as it must follow this head. */
  refusal(body: Buffer): Buffer
}

/** Gets the pieces of a response's body as they are sent, without changing them. */
export interface ResponseObserver {
  onPiece(piece: Buffer): void
}

type Listener = () => void
const forgotten: Listener = () => {}

/** A response to a request. Its head is sent together with the first bytes of its body. */
export class Response {
  readonly #sink: ResponseSink
  readonly #traits: RequestTraits
  /** The status that `writeHead` was given; 0 before. */
  status = 0
  /** Whether the connection is closed after this response. */
  closesConnection: boolean
  /**
   * Whether the connection is closed after this response without reading what the client may still be
   * sending.
   */
  closesImmediately = false
  /** The head that `keepAlive` has sent; undefined if `writeHead` came first. */
  early: EarlyHead | undefined
  /** The connection after `upgrade`. */
  upgraded: UpgradedConnection | undefined
  #headers: ResponseHeaders = {}
  /** Whether the status is another one than that of the head that was sent early. */
  #isRefusal = false
  /** Headers that `setHeader` was given. */
  #presetHeaders: ResponseHeaders | undefined
  /** The lines of the headers that `addHeader` was given. */
  #addedHeaders = ''
  /**
   * Gets each piece of the body that is given to the connection. It is an object and not a function, because
   * a closure would keep the objects of its call alive: with a closure, collecting young garbage took three
   * times as long.
   */
  observer: ResponseObserver | undefined
  #headersAtHead: (() => ResponseHeaders | undefined) | undefined
  #isHeadSent = false
  #hasContinued = false
  #framing: 'length' | 'chunks' | 'until closed' | 'no body' = 'chunks'
  #hasEnded = false
  #isFinished = false
  #isAborted = false
  #closedListeners: Listener[] = []
  #drainListener: Listener | undefined

  constructor(sink: ResponseSink, traits: RequestTraits) {
    this.#sink = sink
    this.#traits = traits
    this.closesConnection = !traits.keepAlive
  }

  /** Whether `writeHead` was called or the head was sent, other than early. */
  get headersSent(): boolean {
    return this.status > 0
  }

  /** Whether the request's method is HEAD, so that no body is sent. */
  get isHeadOnly(): boolean {
    return this.#traits.method === 'HEAD'
  }

  get isHeadSent(): boolean {
    return this.#isHeadSent
  }

  /** Whether `end` was called. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Whether the operating system has taken the whole response. */
  get isFinished(): boolean {
    return this.#isFinished
  }

  /** Whether the connection was lost before the response was finished. */
  get isAborted(): boolean {
    return this.#isAborted
  }

  /** Sends `100 Continue`, after which the client sends the body. */
  writeContinue(): void {
    this.#hasContinued = true
    if (this.#sink.isOpen) this.#sink.send('HTTP/1.1 100 Continue\r\n\r\n')
  }

  /** Sets a header that is sent in addition to those of `writeHead`. */
  setHeader(name: string, value: string): void {
    this.#presetHeaders = { ...this.#presetHeaders, [name]: value }
  }

  /** Adds a header that a response may have several times, such as `set-cookie`. */
  addHeader(name: string, value: string): void {
    this.#addedHeaders += headerLine(name, value)
  }

  /** Headers that `setHeader` was given. */
  get presetHeaders(): ResponseHeaders | undefined {
    return this.#presetHeaders
  }

  /**
   * A function that adds headers which are known only when the head is sent. Headers given to `writeHead`
   * replace them.
   */
  set headersAtHead(make: () => ResponseHeaders | undefined) {
    this.#headersAtHead = make
  }

  /**
   * Sends bytes that are no part of the answer, such as a comment between two events, while a client waits.
   * Observers do not get them. Before `writeHead`, `head` is sent first, once; what `writeHead` is given
   * then comes too late for the client.
   */
  keepAlive(bytes: Buffer, head: EarlyHead): void {
    if (this.#hasEnded || this.#isAborted || !this.#sink.isOpen) return
    if (this.headersSent) {
      this.#sendPiece(this.#takeHead(undefined), bytes)
      return
    }
    if (!this.early) this.#headers = { ...this.#presetHeaders, ...head.headers }
    this.early ??= head
    this.#sendPiece(this.#takeHead(undefined), bytes)
    this.status = 0
  }

  /** Sets status and headers; a header given here replaces one set by `setHeader`. */
  writeHead(status: number, headers: ResponseHeaders): this {
    if (this.early) {
      this.status = 200
      this.#isRefusal = status !== 200
      return this
    }
    this.status = status
    this.#headers = this.#presetHeaders ? { ...this.#presetHeaders, ...headers } : headers
    return this
  }

  /**
   * Sends a piece of the body. Returns false if the client reads slowly: the caller should then wait for
   * `whenDrained`.
   */
  write(piece: Buffer): boolean {
    if (this.#hasEnded || this.#isAborted || !this.#sink.isOpen) return true
    const sent = this.#formed(piece)
    this.observer?.onPiece(sent)
    return this.#sendPiece(this.#takeHead(undefined), sent)
  }

  /**
   * Sends the rest of the body, if any, and ends the response. `before` is a piece to send first, if possible
   * in the same write.
   */
  end(rest?: Buffer | string, before?: Buffer): void {
    if (this.#hasEnded || this.#isAborted || !this.#sink.isOpen) return
    const last = this.#formed(typeof rest === 'string' ? Buffer.from(rest) : rest)
    const head = this.#takeHead(before ? undefined : (last?.length ?? 0))
    this.#hasEnded = true
    if (this.observer) {
      if (before) this.observer.onPiece(before)
      if (last) this.observer.onPiece(last)
    }
    if (before?.length && last?.length && this.#framing === 'chunks') this.#sendBoth(head, before, last)
    else {
      if (before) this.#sendPiece(head, before)
      this.#sendLast(before ? '' : head, this.#framing === 'no body' ? undefined : last)
    }
    this.#sink.responseEnded()
  }

  /**
   * Notes that a request to an upstream is about to be sent. If the client has closed its side of the
   * connection, the response may then be aborted at once.
   */
  needsUpstream(): void {
    if (!this.#hasEnded && !this.#isAborted) this.#sink.needsUpstream()
  }

  /** Notes that the response continues until the client leaves, and that one which closes its side has left. */
  lastsUntilClientLeaves(): void {
    if (!this.#hasEnded && !this.#isAborted) this.#sink.lastsUntilClientLeaves?.()
  }

  /**
   * Ends HTTP on the connection after a request that asks for it (`Request.asksUpgrade`). The caller writes the head
   * of the response, a 101, to the returned connection. Undefined if that is not possible any more.
   */
  upgrade(): UpgradedConnection | undefined {
    if (this.headersSent || this.#hasEnded || this.#isAborted) return undefined
    const connection = this.#sink.upgrade?.()
    if (!connection) return undefined
    this.upgraded = connection
    this.status = 101
    this.#hasEnded = true
    this.onConnectionEnd('finished')
    return connection
  }

  /** Destroys the connection of an unfinished response. */
  destroy(): void {
    if (!this.#isAborted && !this.#isFinished) this.#sink.destroy()
  }

  /** Destroys the connection because its client has read nothing for too long. */
  destroyUnread(): void {
    this.destroy()
  }

  /**
   * Calls `listener` when the response is finished or aborted, but never before this method returns. Returns
   * a function that removes the listener.
   */
  onClosed(listener: Listener): () => void {
    this.#closedListeners.push(listener)
    return () => {
      const at = this.#closedListeners.indexOf(listener)
      if (at !== -1) this.#closedListeners.splice(at, 1)
    }
  }

  /** Calls `listener` once the client has read what was sent, or will not: at once if nothing was sent. */
  whenRead(listener: Listener): void {
    if (this.headersSent && !this.#isFinished && !this.#isAborted) this.onClosed(listener)
    else listener()
  }

  /** Calls `listener` once, when the waiting bytes are sent. */
  whenDrained(listener: Listener): void {
    this.#drainListener = listener
  }

  /** Continues a writer that waits with `whenDrained`; only the connection calls this. */
  onDrain(): void {
    const listener = this.#drainListener
    this.#drainListener = undefined
    listener?.()
  }

  /** Notes that the whole response was sent, or will never be; only the connection calls this. */
  onConnectionEnd(how: 'finished' | 'aborted'): void {
    if (this.#isFinished || this.#isAborted) return
    if (how === 'finished') this.#isFinished = true
    else this.#isAborted = true
    // The response and the array may be in the old generation of V8's heap, where they would keep all that their
    // functions refer to until a full garbage collection. Setting the array's length to 0 would not remove the
    // elements.
    this.#drainListener = undefined
    this.observer = undefined
    const listeners = this.#closedListeners
    this.#closedListeners = []
    for (const listener of listeners) listener()
    listeners.fill(forgotten)
  }

  /**
   * Renders the head if it was not sent yet, otherwise returns an empty text. `length`: bytes of the whole
   * body, if known.
   */
  #takeHead(length: number | undefined): string {
    if (this.#isHeadSent) return ''
    if (this.status === 0) this.status = 200
    const { method, version, headers } = this.#traits
    // Without `100 Continue` the client may or may not send its body, so it is unknown where the next request
    // begins.
    if (headers.expect !== undefined && version === '1.1' && !this.#hasContinued) {
      this.closesConnection = true
      this.closesImmediately = true
    }
    let head = responseHead(this.status, this.#headers, this.#headersAtHead?.()) + this.#addedHeaders
    this.#headersAtHead = undefined
    this.#isHeadSent = true
    const hasLengthHeader = this.#headers['content-length'] !== undefined
    if (this.status === 204 || this.status === 304) this.#framing = 'no body'
    else if (hasLengthHeader || length !== undefined) {
      this.#framing = method === 'HEAD' ? 'no body' : 'length'
      if (!hasLengthHeader) head += `content-length: ${length}\r\n`
    } else if (method === 'HEAD') this.#framing = 'no body'
    else if (version === '1.1') head += 'transfer-encoding: chunked\r\n'
    else {
      this.#framing = 'until closed'
      this.closesConnection = true
    }
    return this.closesConnection
      ? `${head}connection: close\r\n\r\n`
      : `${head}connection: keep-alive\r\nkeep-alive: timeout=${IDLE_TIMEOUT_SECONDS}\r\n\r\n`
  }

  // The body of a refusal is written in one piece.
  #formed<Piece extends Buffer | undefined>(piece: Piece): Piece | Buffer {
    return this.#isRefusal && this.early && piece && piece.length > 0 ? this.early.refusal(piece) : piece
  }

  #sendPiece(head: string, piece: Buffer): boolean {
    if (this.#framing === 'no body' || piece.length === 0) return this.#sendHead(head)
    if (this.#framing === 'chunks') return this.#sendFramed(`${head}${sizeLine(piece)}`, piece, CRLF)
    if (head === '') return this.#sink.send(piece)
    return this.#sendFramed(head, piece, '')
  }

  #sendBoth(head: string, piece: Buffer, last: Buffer): void {
    const end = coalesced(`${CRLF}${sizeLine(last)}`, last, LAST_CHUNK_AFTER)
    this.#sink.sendParts([`${head}${sizeLine(piece)}`, piece, end])
  }

  #sendHead(head: string): boolean {
    return head === '' || this.#sink.send(head)
  }

  #sendLast(head: string, last: Buffer | undefined): void {
    const sink = this.#sink
    if (this.#framing === 'chunks') {
      // The head was sent before the last piece: chunks are only used if the length was unknown at that time.
      if (!last?.length) sink.send(LAST_CHUNK)
      else this.#sendFramed(sizeLine(last), last, LAST_CHUNK_AFTER)
    } else if (!last?.length) this.#sendHead(head)
    else if (head === '') sink.send(last)
    else this.#sendFramed(head, last, '')
  }

  #sendFramed(before: string, bytes: Buffer, after: string): boolean {
    if (bytes.length <= MAX_COALESCED_BYTES) return this.#sink.send(coalesced(before, bytes, after))
    return this.#sink.sendParts(after === '' ? [before, bytes] : [before, bytes, after])
  }
}

function sizeLine(chunk: Buffer): string {
  return `${chunk.length.toString(16)}\r\n`
}

function coalesced(before: string, bytes: Buffer, after: string): Buffer {
  const one = Buffer.allocUnsafe(before.length + bytes.length + after.length)
  one.write(before, 0, 'latin1')
  one.set(bytes, before.length)
  if (after !== '') one.write(after, before.length + bytes.length, 'latin1')
  return one
}
