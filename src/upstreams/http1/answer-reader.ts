import { Framing, MOST_FRAMING, MOST_HEAD, MOST_HEAD_WITH_BLANKS } from '../../http1/framing.ts'
import { type Findings, GO_ON, Llhttp, NO_BODY, PAUSE, STOP } from '../../http1/llhttp.ts'
import type { AnswerHead } from '../exchange.ts'

/** What a read brought. */
export interface Step {
  /** The head, if it is complete since this read. */
  readonly head: AnswerHead | undefined
  /** What came of the body, in one piece; its own copy. */
  readonly body: Buffer | undefined
  readonly complete: boolean
  /** Whether more came than the answer that is complete: nobody asked for it. */
  readonly surplus: boolean
  /** Why the connection cannot be read any further, if it cannot. */
  readonly broken: 'malformed answer' | 'headers too large' | undefined
}

/**
 * Reads the answers of one connection, one at a time. Interim answers (1xx) are passed over, and count towards the head of the
 * answer that follows them.
 */
export class AnswerReader implements Findings {
  readonly #parser = new Llhttp('answers', this)
  #bytes: Buffer = Buffer.alloc(0)
  #length = 0
  #awaiting = false
  #isPaused = false
  #headBytes = 0
  /** Counts all bytes to the end of the head, then those since the last piece of the body. */
  readonly #framing = new Framing()
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
  #keepsAlive = false
  #head: AnswerHead | undefined
  #bodyStart = 0
  #bodyEnd = 0
  #body: Buffer | undefined
  #bodyLength = 0
  #complete = false

  /** Prepares for the next answer. */
  expect(): void {
    if (this.#isPaused) this.#parser.resume()
    this.#isPaused = false
    this.#awaiting = true
    this.#headBytes = 0
    this.#framing.restartAt(0)
    this.#status = 0
    this.#complete = false
    this.#forgetHeaders()
  }

  /** After a complete answer: whether the connection may carry another. */
  get mayBeKept(): boolean {
    return this.#keepsAlive && this.#status !== 204 && this.#status !== 304
  }

  /** After a complete answer: for how many seconds its upstream says that it keeps the connection. */
  get keepAliveSeconds(): number | undefined {
    return this.#keepAliveSeconds
  }

  /** Takes in the first `length` of `bytes`, which may change afterwards. */
  read(bytes: Buffer, length: number): Step {
    this.#bytes = bytes
    this.#length = length
    this.#textEnd = 0
    this.#framing.nextBytes()
    const progress = this.#parser.parse(bytes, 0, length)
    this.#isPaused = progress === 'paused'
    const end = this.#isPaused ? this.#parser.parsed : length
    const isFine = (progress === 'all' || this.#complete) && this.#isFramedWithin(end)
    return this.#step(isFine, isFine && end < length)
  }

  /** The connection was closed by the upstream: an answer without a length ends so. */
  end(): Step {
    return this.#step(this.#parser.finish() || this.#complete, false)
  }

  /** Gives the parser back. */
  free(): void {
    this.#parser.free()
  }

  #isFramedWithin(end: number): boolean {
    const framing = this.#framing.countTo(end)
    if (this.#status > 0) return framing <= MOST_FRAMING
    this.#tooLarge ||= framing > MOST_HEAD_WITH_BLANKS
    return !this.#tooLarge
  }

  #step(isFine: boolean, surplus: boolean): Step {
    const step: Step = {
      head: this.#head,
      body: this.#takeBody(),
      complete: this.#complete && isFine,
      surplus,
      broken: isFine ? undefined : this.#tooLarge ? 'headers too large' : 'malformed answer',
    }
    this.#head = undefined
    return step
  }

  onMessageBegin(): number {
    if (!this.#awaiting) return STOP
    this.#forgetHeaders()
    return GO_ON
  }

  onTarget(): number {
    return STOP
  }

  onStatus(start: number, end: number): number {
    return this.#weigh(start, end)
  }

  onHeaderName(start: number, end: number): number {
    if (this.#inValue) this.#headerDone()
    this.#name += this.#bytes.toString('latin1', start, end)
    return this.#weigh(start, end)
  }

  onHeaderValue(start: number, end: number): number {
    this.#inValue = true
    this.#value += this.#bytes.toString('latin1', start, end)
    return this.#weigh(start, end)
  }

  onHeadersComplete(status: number, upgrade: boolean, keepAlive: boolean): number {
    // The parser would read an answer of HTTP/2.0, or 0.9, as if it were one of these.
    const { version } = this.#parser
    if (version !== '1.1' && version !== '1.0') return STOP
    if (upgrade || status === 101) return STOP
    this.#headerDone()
    // An interim answer has no body (RFC 9110, 15.2), and none of what it says is of the answer that follows.
    if (status < 200) return NO_BODY
    if (!this.#isFramedWithin(this.#textEnd)) return STOP
    this.#framing.restartAt(this.#textEnd)
    this.#status = status
    this.#keepsAlive = keepAlive
    this.#head = { status, contentType: this.#contentType, retryAfter: this.#retryAfter }
    return GO_ON
  }

  onBody(start: number, end: number): number {
    if (this.#framing.countTo(start) > MOST_FRAMING) return STOP
    this.#framing.restartAt(end)
    // Chunks that lie in one read become one piece: whoever is told of it writes once.
    if (this.#bodyEnd === 0) {
      this.#bodyStart = start
      this.#bodyEnd = end
      return GO_ON
    }
    if (!this.#body) {
      this.#body = Buffer.allocUnsafe(this.#length - this.#bodyStart)
      this.#append(this.#bodyStart, this.#bodyEnd)
    }
    this.#append(start, end)
    return GO_ON
  }

  onMessageComplete(): number {
    if (this.#status === 0) return GO_ON
    this.#complete = true
    this.#awaiting = false
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

  #forgetHeaders(): void {
    this.#name = ''
    this.#value = ''
    this.#inValue = false
    this.#contentType = ''
    this.#retryAfter = undefined
    this.#keepAliveSeconds = undefined
  }

  #weigh(start: number, end: number): number {
    this.#textEnd = end
    this.#headBytes += end - start
    this.#tooLarge = this.#headBytes > MOST_HEAD
    return this.#tooLarge ? STOP : GO_ON
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
