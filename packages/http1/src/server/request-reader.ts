import {
  FramingCounter,
  MAX_FRAMING_BYTES,
  MAX_HEAD_BYTES,
  MAX_RAW_HEAD_BYTES,
} from '../parser/framing-counter.ts'
import {
  CONTINUE,
  Llhttp,
  MAX_PARSE_BYTES,
  PAUSE,
  type ParserCallbacks,
  REJECT,
  SKIP_BODY,
} from '../parser/llhttp.ts'
import { type HeaderNames, type Headers, mergeRepeatedHeader } from './header-names.ts'

/** Maximum number of headers in one request, trailers included. */
const MAX_HEADERS = 100
/**
 * Maximum number of bytes that the parser gets at once until the head is complete, so that only few bytes of
 * the body are copied.
 */
const HEAD_PARSE_BYTES = 4_096

export interface RequestHead<Name extends string = string> {
  readonly method: string
  /** Request target as it was sent. */
  readonly url: string
  /** `1.1` or `1.0`. */
  readonly version: string
  readonly headers: Headers<Name>
  /** Number of Host headers. */
  readonly hosts: number
  /** Whether the client may send another request on the same connection. */
  readonly keepAlive: boolean
  /** Whether the client asks to change the protocol of the connection, with `Upgrade` and `Connection: upgrade`. */
  readonly asksUpgrade?: boolean
}

/** Reason why the bytes cannot be read as a request. */
export type UnreadableReason = 'headers too large' | TransferCodingError

/** Reads the requests of one connection, one at a time. */
export class RequestReader implements ParserCallbacks {
  readonly #headerNames: HeaderNames<string>
  readonly #parser = new Llhttp('requests', this)
  #bytes: Buffer = Buffer.alloc(0)
  #parseStart = 0
  #url = ''
  #headers: { [name: string]: string | undefined } = {}
  #hosts = 0
  #transferEncodings = 0
  #headerCount = 0
  #headBytes = 0
  /** Counts the bytes of the head, then the bytes between two pieces of a chunked body. */
  readonly #framing = new FramingCounter()
  #tooLarge = false
  #transferCodingError: TransferCodingError | undefined
  // State of the current header. A name or value that is split over reads arrives in several pieces.
  #name: string | undefined
  #nameStart = 0
  #nameEnd = 0
  #nameText = ''
  #value = ''
  #headerPart: 'none' | 'name' | 'value' = 'none'
  #hasHead = false
  /** Whether the parser decodes the body, because the head states no length for it. */
  #isChunked = false
  /** Number of bytes of the body that have not arrived, if the head states its length. */
  #bodyBytesLeft = 0
  /** Room for the bytes of the body that have not arrived; undefined if each piece gets its own. */
  #room: Buffer | undefined
  #isPaused = false

  /** Head of the current request, once it is complete. */
  head: RequestHead | undefined
  /** Copies of the bytes of the body that the last `read` found. */
  readonly body: Buffer[] = []
  /** Whether the request is complete. Nothing more is read until `next`. */
  isComplete = false
  /** Why nothing more can be read on this connection; undefined if reading can go on. */
  unreadable: UnreadableReason | undefined
  /** Whether the first byte of a request has arrived. */
  hasBegun = false

  constructor(headerNames: HeaderNames<string>) {
    this.#headerNames = headerNames
  }

  /**
   * Reads `bytes`, but not beyond the end of the request; returns the position after the last byte read.
   * Keeps no reference to `bytes`.
   */
  read(bytes: Buffer): number {
    this.body.length = 0
    let at = 0
    while (at < bytes.length && !this.isComplete && !this.unreadable)
      at = this.#bodyBytesLeft > 0 ? this.#readSizedBody(bytes, at) : this.#parse(bytes, at)
    return at
  }

  /** Prepares for the next request; the current one must be complete. */
  next(): void {
    this.head = undefined
    this.isComplete = false
    this.hasBegun = false
    this.#hasHead = false
    this.#framing.restartAt(0)
  }

  /** Frees the parser. */
  free(): void {
    this.#parser.free()
  }

  #readSizedBody(bytes: Buffer, at: number): number {
    const left = this.#bodyBytesLeft
    const size = Math.min(bytes.length - at, left)
    // A body of which at least half arrives at once gets room for the rest, so that its pieces need not be joined by
    // another copy. A client that sends no rest occupies at most twice what it has sent.
    if (!this.#room && size < left && 2 * size >= left) this.#room = Buffer.allocUnsafe(left)
    const piece = this.#room?.subarray(0, size) ?? Buffer.allocUnsafe(size)
    bytes.copy(piece, 0, at, at + size)
    this.body.push(piece)
    this.#bodyBytesLeft = left - size
    this.isComplete = size === left
    this.#room = this.isComplete ? undefined : this.#room?.subarray(size)
    return at + size
  }

  #parse(bytes: Buffer, at: number): number {
    if (this.#isPaused) {
      this.#isPaused = false
      this.#parser.resume()
    }
    const to = Math.min(bytes.length, at + (this.#isChunked ? MAX_PARSE_BYTES : HEAD_PARSE_BYTES))
    this.#bytes = bytes
    this.#parseStart = at
    this.#framing.nextBytes()
    const isHead = !this.#hasHead
    const progress = this.#parser.parse(bytes, at, to)
    if (this.#headerPart === 'name') this.#keepName()
    if (progress === 'malformed') {
      this.unreadable = this.#tooLarge ? 'headers too large' : (this.#transferCodingError ?? 'malformed')
      return to
    }
    this.#isPaused = progress === 'paused'
    const end = this.#isPaused ? at + this.#parser.parsedBytes : to
    this.#checkFraming(end - at, isHead ? 'head' : 'body')
    return end
  }

  onMessageBegin(): number {
    this.hasBegun = true
    this.#url = ''
    this.#headers = {}
    this.#hosts = 0
    this.#transferEncodings = 0
    this.#headerCount = 0
    this.#headBytes = 0
    this.#isChunked = false
    return CONTINUE
  }

  onTarget(start: number, end: number): number {
    this.#url += this.#text(start, end)
    return this.#countHeadBytes(end - start)
  }

  onStatus(): number {
    return REJECT
  }

  onHeaderName(start: number, end: number): number {
    if (this.#headerPart === 'value') this.#headerDone()
    if (this.#headerPart === 'name') this.#nameText += this.#text(start, end)
    else {
      this.#headerPart = 'name'
      this.#nameStart = this.#parseStart + start
      this.#nameEnd = this.#parseStart + end
    }
    return this.#countHeadBytes(end - start)
  }

  onHeaderValue(start: number, end: number): number {
    if (this.#headerPart === 'name') {
      this.#headerPart = 'value'
      this.#name = this.#hasHead ? undefined : this.#completeName()
      this.#nameText = ''
      this.#value = ''
    }
    if (this.#name) this.#value += this.#text(start, end)
    return this.#countHeadBytes(end - start)
  }

  onHeadersComplete(_: number, asksUpgrade: boolean, keepAlive: boolean): number {
    if (this.#headerPart !== 'none') this.#headerDone()
    if (this.#tooLarge) return REJECT
    const headers = this.#headers
    const coding = headers['transfer-encoding']
    this.#hasHead = true
    this.head = {
      method: this.#parser.method,
      url: this.#url,
      version: this.#parser.version,
      headers,
      hosts: this.#hosts,
      // An HTTP/1.0 client may not understand chunked responses, even if it sends chunked requests.
      keepAlive: keepAlive && (coding === undefined || this.#parser.version === '1.1'),
      asksUpgrade,
    }
    const length = headers['content-length']
    if (coding !== undefined) {
      this.#transferCodingError =
        length === undefined ? transferCodingError(coding, this.#transferEncodings) : 'malformed'
      if (this.#transferCodingError) return REJECT
    }
    // The length is valid here, and a request with both `content-length` and `transfer-encoding` has been
    // refused.
    this.#bodyBytesLeft = length === undefined ? 0 : Number(length)
    this.#isChunked = coding !== undefined
    // The parser always stops after a head, so that its size is known. Without chunks, `onMessageComplete` stops it.
    return this.#isChunked ? PAUSE : SKIP_BODY
  }

  onBody(start: number, end: number): number {
    if (this.#framing.countTo(start) > MAX_FRAMING_BYTES) return REJECT
    this.#framing.restartAt(end)
    this.body.push(Buffer.from(this.#bytes.subarray(this.#parseStart + start, this.#parseStart + end)))
    return CONTINUE
  }

  onMessageComplete(): number {
    if (this.#headerPart !== 'none') this.#headerDone()
    if (this.#tooLarge) return REJECT
    this.isComplete = this.#bodyBytesLeft === 0
    return PAUSE
  }

  #text(start: number, end: number): string {
    return this.#bytes.toString('latin1', this.#parseStart + start, this.#parseStart + end)
  }

  #keepName(): void {
    if (this.#nameText === '') this.#nameText = this.#bytes.toString('latin1', this.#nameStart, this.#nameEnd)
  }

  #completeName(): string | undefined {
    if (this.#nameText === '') return this.#headerNames.at(this.#bytes, this.#nameStart, this.#nameEnd)
    const letters = Buffer.from(this.#nameText, 'latin1')
    return this.#headerNames.at(letters, 0, letters.length)
  }

  #headerDone(): void {
    this.#headerPart = 'none'
    this.#headerCount += 1
    if (this.#headerCount > MAX_HEADERS) this.#tooLarge = true
    const name = this.#name
    if (!name) return
    this.#name = undefined
    const value = trimmed(this.#value)
    if (name === 'host') this.#hosts += 1
    else if (name === 'transfer-encoding') this.#transferEncodings += 1
    const before = this.#headers[name]
    this.#headers[name] = before === undefined ? value : mergeRepeatedHeader(name, before, value)
  }

  #countHeadBytes(bytes: number): number {
    this.#headBytes += bytes
    this.#tooLarge ||= this.#headBytes > MAX_HEAD_BYTES
    return this.#tooLarge ? REJECT : CONTINUE
  }

  /** Checks the bytes that were read in front of, or between, the pieces of a body. */
  #checkFraming(bytes: number, part: 'head' | 'body'): void {
    const framing = this.#framing.countTo(bytes)
    if (part === 'head') {
      if (framing > MAX_RAW_HEAD_BYTES) this.unreadable = 'headers too large'
      else if (this.#hasHead) this.#framing.restartAt(bytes)
    } else if (framing > MAX_FRAMING_BYTES) this.unreadable = 'malformed'
  }
}

/** Removes blanks at the end of a value; the parser omits those at the beginning. */
function trimmed(value: string): string {
  let end = value.length
  while (end > 0 && (value[end - 1] === ' ' || value[end - 1] === '\t')) end -= 1
  return end === value.length ? value : value.slice(0, end)
}

/** A transfer coding (RFC 9112, section 7), with optional parameters. */
const CODING = /^[\w!#$%&'*+.^`|~-]+(?:[ \t]*;[^,"]*)?$/

/** Why a request's Transfer-Encoding cannot be served. */
type TransferCodingError = 'malformed' | 'unknown transfer coding'

/**
 * Finds the error of a Transfer-Encoding; undefined for `chunked`, the only coding that is supported (RFC
 * 9112, section 6.1). `lines` is the number of Transfer-Encoding headers, which proxies could read
 * differently if there are several.
 */
function transferCodingError(value: string, lines: number): TransferCodingError | undefined {
  const known = value.toLowerCase()
  if (lines === 1 && known === 'chunked') return undefined
  const codings = known.split(',').map((coding) => coding.trim())
  const chunkedAt = codings.indexOf('chunked')
  const isWellFormed =
    lines === 1 &&
    codings.every((coding) => CODING.test(coding)) &&
    (chunkedAt === -1 || chunkedAt === codings.length - 1)
  return isWellFormed ? 'unknown transfer coding' : 'malformed'
}
