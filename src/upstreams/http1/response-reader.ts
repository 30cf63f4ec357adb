import { FramingCounter, MAX_FRAMING_BYTES, MAX_HEAD_BYTES, MAX_RAW_HEAD_BYTES } from '../../http1/framing-counter.ts'
import { type ParserCallbacks, CONTINUE, Llhttp, PAUSE, REJECT } from '../../http1/llhttp.ts'
import type { UpstreamResponseHead } from '../upstream-request.ts'

/** What a read brought. */
export interface ReadResult {
  /** The head, if it is complete since this read. */
  readonly head: UpstreamResponseHead | undefined
  /** What came of the body, in one piece; its own copy. */
  readonly body: Buffer | undefined
  readonly isComplete: boolean
  /** Whether more came than the answer that is complete: nobody asked for it. */
  readonly hasSurplus: boolean
  /** Why the connection cannot be read any further, if it cannot. */
  readonly error: 'malformed answer' | 'headers too large' | undefined
}

/**
 * Reads the answers of one connection, one at a time. Interim answers (1xx) are passed over, and count
 * towards the head of the answer that follows them.
 */
export class ResponseReader implements ParserCallbacks {
  readonly #parser = new Llhttp('responses', this)
  #bytes: Buffer = Buffer.alloc(0)
  #length = 0
  #isExpecting = false
  #isPaused = false
  #headBytes = 0
  /** Counts all bytes to the end of the head, then those since the last piece of the body. */
  readonly #framing = new FramingCounter()
  /** Where in the bytes at hand the last text of a head ended: where the head ends is not told. */
  #textEnd = 0
  #tooLarge = false
  // A name or a value that is cut by the end of a read comes in several pieces.
  #name = ''
  #value = ''
  #inValue = false
  #contentType = ''
  #retryAfter: string | undefined
  #keepAliveSeconds: number | undefined
  #status = 0
  #isKeepAlive = false
  #head: UpstreamResponseHead | undefined
  #bodyStart = 0
  #bodyEnd = 0
  #body: Buffer | undefined
  #bodyLength = 0
  #isComplete = false

  /** Prepares for the next answer. */
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

  /** After a complete answer: whether the connection may carry another. */
  get isReusable(): boolean {
    return this.#isKeepAlive && this.#status !== 204 && this.#status !== 304
  }

  /** After a complete answer: for how many seconds its upstream says that it keeps the connection. */
  get keepAliveSeconds(): number | undefined {
    return this.#keepAliveSeconds
  }

  /** Takes in the first `length` of `bytes`, which may change afterwards. */
  read(bytes: Buffer, length: number): ReadResult {
    this.#bytes = bytes
    this.#length = length
    this.#textEnd = 0
    this.#framing.nextBytes()
    const progress = this.#parser.parse(bytes, 0, length)
    this.#isPaused = progress === 'paused'
    const end = this.#isPaused ? this.#parser.parsedBytes : length
    const isFine = (progress === 'all' || this.#isComplete) && this.#isFramingWithinLimit(end)
    return this.#result(isFine, isFine && end < length)
  }

  /** The connection was closed by the upstream: an answer without a length ends so. */
  end(): ReadResult {
    return this.#result(this.#parser.finish() || this.#isComplete, false)
  }

  /** Gives the parser back. */
  free(): void {
    this.#parser.free()
  }

  #isFramingWithinLimit(end: number): boolean {
    const framing = this.#framing.countTo(end)
    if (this.#status > 0) return framing <= MAX_FRAMING_BYTES
    this.#tooLarge ||= framing > MAX_RAW_HEAD_BYTES
    return !this.#tooLarge
  }

  #result(isFine: boolean, surplus: boolean): ReadResult {
    const result: ReadResult = {
      head: this.#head,
      body: this.#takeBody(),
      isComplete: this.#isComplete && isFine,
      hasSurplus: surplus,
      error: isFine ? undefined : this.#tooLarge ? 'headers too large' : 'malformed answer',
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
    return this.#countHeadBytes(start, end)
  }

  onHeaderName(start: number, end: number): number {
    if (this.#inValue) this.#headerDone()
    this.#name += this.#bytes.toString('latin1', start, end)
    return this.#countHeadBytes(start, end)
  }

  onHeaderValue(start: number, end: number): number {
    this.#inValue = true
    this.#value += this.#bytes.toString('latin1', start, end)
    return this.#countHeadBytes(start, end)
  }

  onHeadersComplete(status: number, upgrade: boolean, keepAlive: boolean): number {
    if (upgrade || status === 101) return REJECT
    this.#headerDone()
    if (status < 200) return CONTINUE
    if (!this.#isFramingWithinLimit(this.#textEnd)) return REJECT
    this.#framing.restartAt(this.#textEnd)
    this.#status = status
    this.#isKeepAlive = keepAlive
    this.#head = { status, contentType: this.#contentType, retryAfter: this.#retryAfter }
    return CONTINUE
  }

  onBody(start: number, end: number): number {
    if (this.#framing.countTo(start) > MAX_FRAMING_BYTES) return REJECT
    this.#framing.restartAt(end)
    // Chunks that lie in one read become one piece: whoever is told of it writes once.
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
    switch (this.#name.toLowerCase()) {
      case 'content-type':
        this.#contentType ||= this.#value.trim()
        break
      case 'retry-after':
        this.#retryAfter ??= this.#value.trim()
        break
      case 'keep-alive':
        this.#keepAliveSeconds = secondsIn(this.#value)
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
    this.#keepAliveSeconds = undefined
  }

  #countHeadBytes(start: number, end: number): number {
    this.#textEnd = end
    this.#headBytes += end - start
    this.#tooLarge = this.#headBytes > MAX_HEAD_BYTES
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
