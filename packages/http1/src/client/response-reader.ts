import {
  FramingCounter,
  MAX_FRAMING_BYTES,
  MAX_HEAD_BYTES,
  MAX_RAW_HEAD_BYTES,
} from '../parser/framing-counter.ts'
import {
  CONTINUE,
  Llhttp,
  type ParseResult,
  type ParserCallbacks,
  PAUSE,
  REJECT,
  SKIP_BODY,
} from '../parser/llhttp.ts'
import type { UpstreamResponseHead } from './upstream-request.ts'

/**
 * The headers of all responses that have none of the headers to read; one object is shared to save memory.
 */
const NO_HEADERS: Record<string, string> = Object.freeze({})

/** Codings in `content-encoding` whose bytes would not be understood; others, such as `utf-8`, change nothing. */
const COMPRESSED = /\b(?:br|compress|deflate|gzip|zstd)\b/i

/** Result of reading some bytes. */
export interface ReadResult {
  /** Status and headers, if these bytes completed them. */
  readonly head: UpstreamResponseHead | undefined
  /** Copy of the bytes in this read that belong to the body; undefined if there are none. */
  readonly body: Buffer | undefined
  readonly isComplete: boolean
  /** Whether more bytes followed after the end of the response, although there was no request for them. */
  readonly hasSurplus: boolean
  /** Reason why the connection cannot be read any further. */
  readonly error: 'malformed answer' | 'headers too large' | 'compressed answer' | undefined
}

/**
 * Reads the responses of one connection, one at a time. Interim responses (status 1xx) are skipped; their
 * bytes count towards the size limit of the next response's head.
 */
export class ResponseReader implements ParserCallbacks {
  readonly #readHeaders: ReadonlySet<string>
  readonly #parser = new Llhttp('responses', this)
  #bytes: Buffer = Buffer.alloc(0)
  #length = 0
  #isExpecting = false
  #isPaused = false
  #headBytes = 0
  /** Counts the bytes up to the end of the head, then the bytes between two pieces of the body. */
  readonly #framing = new FramingCounter()
  #tooLarge = false
  // State of the current header. A name or value that is split over reads arrives in several pieces.
  #name = ''
  #value = ''
  #inValue = false
  #contentType = ''
  #retryAfter: string | undefined
  #headers: Record<string, string> = NO_HEADERS
  #keepAliveSeconds: number | undefined
  /** For the parser, `chunked` before a tab is another coding: the chunks would be passed on as the body. */
  #hasTabbedCoding = false
  #isCompressed = false
  /** Why the head or the body is rejected, unless the headers are too large. */
  #error: 'malformed answer' | 'compressed answer' = 'malformed answer'
  #status = 0
  #isKeepAlive = false
  #head: UpstreamResponseHead | undefined
  #bodyStart = 0
  #bodyEnd = 0
  #body: Buffer | undefined
  #bodyLength = 0
  #isComplete = false

  /**
   * `readHeaders`: names, in lower case, of headers to read in addition to `content-type` and `retry-after`.
   */
  constructor(readHeaders: ReadonlySet<string>) {
    this.#readHeaders = readHeaders
  }

  /** Prepares the reader for the next response on the connection. */
  expect(): void {
    if (this.#isPaused) this.#parser.resume()
    this.#isPaused = false
    this.#isExpecting = true
    this.#headBytes = 0
    this.#framing.restartAt(0)
    this.#status = 0
    this.#isComplete = false
    this.#resetHeaders()
  }

  /** Whether the connection may carry another request after a complete response. */
  get isReusable(): boolean {
    return this.#isKeepAlive && this.#status !== 204 && this.#status !== 304
  }

  /** Idle timeout in seconds that the upstream stated in its `keep-alive` header. */
  get keepAliveSeconds(): number | undefined {
    return this.#keepAliveSeconds
  }

  /** Reads the first `length` bytes; keeps no reference to them. */
  read(bytes: Buffer, length: number): ReadResult {
    if (this.#status > 0) return this.#readBody(bytes, length)
    const progress = this.#parse(bytes, length)
    const headEnd = this.#isPaused ? this.#parser.parsedBytes : length
    this.#tooLarge ||= this.#framing.countTo(headEnd) > MAX_RAW_HEAD_BYTES
    if (this.#tooLarge) this.#head = undefined
    if (this.#tooLarge || !this.#isPaused) return this.#result(!this.#tooLarge && progress === 'all', false)
    this.#parser.resume()
    this.#framing.restartAt(0)
    return this.#readBody(bytes.subarray(headEnd, length), length - headEnd)
  }

  /** Handles the end of the input, which completes a response of unknown length. */
  end(): ReadResult {
    return this.#result(this.#parser.finish() || this.#isComplete, false)
  }

  /** Frees the parser. */
  free(): void {
    this.#parser.free()
  }

  #readBody(bytes: Buffer, length: number): ReadResult {
    const progress = this.#parse(bytes, length)
    const end = this.#isPaused ? this.#parser.parsedBytes : length
    const isFramed = this.#framing.countTo(end) <= MAX_FRAMING_BYTES
    const isFine = isFramed && (progress === 'all' || this.#isComplete)
    return this.#result(isFine, isFine && end < length)
  }

  #parse(bytes: Buffer, length: number): ParseResult {
    this.#bytes = bytes
    this.#length = length
    this.#framing.nextBytes()
    const progress = this.#parser.parse(bytes, 0, length)
    this.#isPaused = progress === 'paused'
    return progress
  }

  #result(isFine: boolean, surplus: boolean): ReadResult {
    const result: ReadResult = {
      head: this.#head,
      body: this.#takeBody(),
      isComplete: this.#isComplete && isFine,
      hasSurplus: surplus,
      error: isFine ? undefined : this.#tooLarge ? 'headers too large' : this.#error,
    }
    this.#head = undefined
    return result
  }

  onMessageBegin(): number {
    if (!this.#isExpecting) return REJECT
    this.#resetHeaders()
    return CONTINUE
  }

  onTarget(): number {
    return REJECT
  }

  onStatus(start: number, end: number): number {
    return this.#countHeadBytes(end - start)
  }

  onHeaderName(start: number, end: number): number {
    if (this.#inValue) this.#headerDone()
    this.#name += this.#bytes.toString('latin1', start, end)
    return this.#countHeadBytes(end - start)
  }

  onHeaderValue(start: number, end: number): number {
    this.#inValue = true
    this.#value += this.#bytes.toString('latin1', start, end)
    return this.#countHeadBytes(end - start)
  }

  onHeadersComplete(status: number, upgrade: boolean, keepAlive: boolean): number {
    // The parser would read HTTP/0.9 and HTTP/2.0 as if they were HTTP/1.1, so other versions are rejected
    // here.
    const { version } = this.#parser
    if (version !== '1.1' && version !== '1.0') return REJECT
    if (upgrade || status === 101) return REJECT
    this.#headerDone()
    if (this.#hasTabbedCoding) return REJECT
    // RFC 9110, section 15.2: an interim response has no body, and its fields do not apply to the final
    // response.
    if (status < 200) return SKIP_BODY
    // No request accepts a coding. Of an error, the status is enough.
    if (status < 300 && this.#isCompressed) {
      this.#error = 'compressed answer'
      return REJECT
    }
    this.#status = status
    this.#isKeepAlive = keepAlive
    this.#head = {
      status,
      contentType: this.#contentType,
      retryAfter: this.#retryAfter,
      headers: this.#headers,
    }
    // The head's size is compared before its body is read.
    return PAUSE
  }

  onBody(start: number, end: number): number {
    if (this.#framing.countTo(start) > MAX_FRAMING_BYTES) return REJECT
    this.#framing.restartAt(end)
    // Chunks from one read are joined, so that they are written to the client at once.
    if (this.#bodyEnd === 0) {
      this.#bodyStart = start
      this.#bodyEnd = end
      return CONTINUE
    }
    if (!this.#body) {
      this.#body = Buffer.allocUnsafe(this.#length - this.#bodyStart)
      this.#append(this.#bodyStart, this.#bodyEnd)
    }
    this.#append(start, end)
    return CONTINUE
  }

  onMessageComplete(): number {
    if (this.#status === 0) return CONTINUE
    this.#isComplete = true
    this.#isExpecting = false
    return PAUSE
  }

  #append(start: number, end: number): void {
    this.#body?.set(this.#bytes.subarray(start, end), this.#bodyLength)
    this.#bodyLength += end - start
  }

  #takeBody(): Buffer | undefined {
    if (this.#bodyEnd === 0) return undefined
    const body =
      this.#body?.subarray(0, this.#bodyLength) ?? copied(this.#bytes, this.#bodyStart, this.#bodyEnd)
    this.#body = undefined
    this.#bodyLength = 0
    this.#bodyEnd = 0
    return body
  }

  #headerDone(): void {
    const name = this.#name.toLowerCase()
    switch (name) {
      case 'content-type':
        this.#contentType ||= this.#value.trim()
        break
      case 'retry-after':
        this.#retryAfter ??= this.#value.trim()
        break
      case 'transfer-encoding':
        this.#hasTabbedCoding ||= this.#value.endsWith('\t')
        break
      case 'content-encoding':
        this.#isCompressed ||= COMPRESSED.test(this.#value)
        break
      case 'keep-alive':
        this.#keepAliveSeconds = secondsIn(this.#value)
        break
      default:
        if (!this.#readHeaders.has(name)) break
        if (this.#headers === NO_HEADERS) this.#headers = {}
        this.#headers[name] ??= this.#value.trim()
    }
    this.#name = ''
    this.#value = ''
    this.#inValue = false
  }

  #resetHeaders(): void {
    this.#name = ''
    this.#value = ''
    this.#inValue = false
    this.#contentType = ''
    this.#retryAfter = undefined
    this.#headers = NO_HEADERS
    this.#keepAliveSeconds = undefined
    this.#hasTabbedCoding = false
    this.#isCompressed = false
  }

  #countHeadBytes(bytes: number): number {
    this.#headBytes += bytes
    this.#tooLarge ||= this.#headBytes > MAX_HEAD_BYTES
    return this.#tooLarge ? REJECT : CONTINUE
  }
}

function copied(bytes: Buffer, start: number, end: number): Buffer {
  const copy = Buffer.allocUnsafe(end - start)
  copy.set(bytes.subarray(start, end))
  return copy
}

function secondsIn(value: string): number | undefined {
  const seconds = /(?:^|[\s,;])timeout\s*=\s*"?(\d{1,9})/i.exec(value)?.[1]
  return seconds === undefined ? undefined : Number(seconds)
}
