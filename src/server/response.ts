import type { Headers } from './header-names.ts'
import { answerHead, type AnswerHeaders } from './answer-head.ts'

/** What an answer may ask of its connection. */
export interface ResponseSink {
  /** Whether anything can still be sent. */
  readonly isOpen: boolean
  /** Sends; false where more is waiting already than should be. */
  send(bytes: Buffer | string): boolean
  /** Sends several, in one write to the system. */
  sendTogether(parts: readonly (Buffer | string)[]): boolean
  /** Everything of the answer was given to it. */
  answered(): void
  /** An upstream is about to be asked for it. */
  needsUpstream(): void
  destroy(): void
}

/** What is known of a request that shapes its answer. */
export interface Asked {
  readonly method: string
  readonly version: string
  /** Whether its sender would have another request on this connection. */
  readonly keepAlive: boolean
  readonly headers: Headers
}

/** Seconds for which a connection is kept that nothing is said on, as callers are told. */
export const KEPT_SECONDS = 65

/** Bytes up to which a piece is copied to be in one with what frames it: that costs less than handing over several. */
const ONE_PIECE = 16_384
const LAST_CHUNK = Buffer.from('0\r\n\r\n')
const CRLF = '\r\n'

type Listener = () => void

/** The answer to a request. A head goes out with the first bytes after it. */
export class Response {
  readonly #sink: ResponseSink
  readonly #asked: Asked
  /** The status that was said; 0 before. */
  status = 0
  /** The connection ends with this answer. */
  isLast: boolean
  /** Nor is it waited for what its caller may still be sending. */
  hangsUp = false
  #headers: AnswerHeaders = {}
  /** What was said of it before its head. */
  #early: AnswerHeaders | undefined
  #isHeadSent = false
  #hasContinued = false
  #framing: 'length' | 'chunks' | 'until closed' | 'no body' = 'chunks'
  #hasEnded = false
  #isFinished = false
  #isLost = false
  #closed: Listener[] = []
  #drained: Listener | undefined

  constructor(sink: ResponseSink, asked: Asked) {
    this.#sink = sink
    this.#asked = asked
    this.isLast = !asked.keepAlive
  }

  /** Whether it is decided what its head says. */
  get headersSent(): boolean {
    return this.status > 0
  }

  /** Whether its body is for nobody: it was asked for with HEAD. */
  get isHeadOnly(): boolean {
    return this.#asked.method === 'HEAD'
  }

  /** Whether anything of it was sent. */
  get hasBegun(): boolean {
    return this.#isHeadSent
  }

  /** Nothing more is to be said. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** All of it was given to the system. */
  get isFinished(): boolean {
    return this.#isFinished
  }

  /** Nobody is there to hear the rest. */
  get isLost(): boolean {
    return this.#isLost
  }

  /** Lets a caller send its body that waits for leave to do so. */
  writeContinue(): void {
    this.#hasContinued = true
    if (this.#sink.isOpen) this.#sink.send('HTTP/1.1 100 Continue\r\n\r\n')
  }

  /** A header beside those that `writeHead` is given. */
  setHeader(name: string, value: string): void {
    this.#early = { ...this.#early, [name]: value }
  }

  /** The headers that `setHeader` was given. */
  get early(): AnswerHeaders | undefined {
    return this.#early
  }

  /** Says what the head says. */
  writeHead(status: number, headers: AnswerHeaders): this {
    this.status = status
    this.#headers = this.#early ? { ...this.#early, ...headers } : headers
    return this
  }

  /** Sends a piece of the body; false where its reader is slow, and more should wait for `whenDrained`. */
  write(piece: Buffer): boolean {
    if (this.#hasEnded || this.#isLost || !this.#sink.isOpen) return true
    const head = this.#takeHead(undefined)
    if (this.#framing === 'no body' || piece.length === 0) return this.#sendHead(head)
    if (this.#framing === 'chunks')
      return this.#sendFramed(`${head}${piece.length.toString(16)}\r\n`, piece, CRLF)
    if (head === '') return this.#sink.send(piece)
    return this.#sendFramed(head, piece, '')
  }

  /** Sends the rest, if there is any, and ends it. */
  end(rest?: Buffer | string): void {
    if (this.#hasEnded || this.#isLost || !this.#sink.isOpen) return
    const last = typeof rest === 'string' ? Buffer.from(rest) : rest
    const head = this.#takeHead(last?.length ?? 0)
    this.#hasEnded = true
    this.#sendLast(head, this.#framing === 'no body' ? undefined : last)
    this.#sink.answered()
  }

  /**
   * To be told before an upstream is asked for the answer: a caller that has closed its side of the connection is not waited for
   * then. It may be lost afterwards.
   */
  needsUpstream(): void {
    if (!this.#hasEnded && !this.#isLost) this.#sink.needsUpstream()
  }

  /** Breaks off. */
  destroy(): void {
    if (!this.#isLost && !this.#isFinished) this.#sink.destroy()
  }

  /** Tells when it is finished, or lost; what comes back takes that back. Never tells within this call. */
  onClosed(listener: Listener): () => void {
    this.#closed.push(listener)
    return () => {
      const at = this.#closed.indexOf(listener)
      if (at !== -1) this.#closed.splice(at, 1)
    }
  }

  /** Tells once when its reader has caught up. */
  whenDrained(listener: Listener): void {
    this.#drained = listener
  }

  /** Called by its connection alone. */
  drained(): void {
    const listener = this.#drained
    this.#drained = undefined
    listener?.()
  }

  /** Called by its connection alone: all of it was sent, or never will be. */
  closed(how: 'finished' | 'lost'): void {
    if (this.#isFinished || this.#isLost) return
    if (how === 'finished') this.#isFinished = true
    else this.#isLost = true
    this.#drained = undefined
    const listeners = this.#closed
    this.#closed = []
    for (const listener of listeners) listener()
  }

  /** The head where it is not sent yet. `length`: of the whole body, where it is known. */
  #takeHead(length: number | undefined): string {
    if (this.#isHeadSent) return ''
    if (this.status === 0) this.status = 200
    const { method, version, headers } = this.#asked
    // Whether the body that leave was asked for comes now is up to its sender: nobody can tell where a next request would begin.
    if (headers.expect !== undefined && version === '1.1' && !this.#hasContinued) {
      this.isLast = true
      this.hangsUp = true
    }
    let head = answerHead(this.status, this.#headers)
    this.#isHeadSent = true
    const isLengthSaid = this.#headers['content-length'] !== undefined
    if (this.status === 204 || this.status === 304) this.#framing = 'no body'
    else if (isLengthSaid || length !== undefined) {
      this.#framing = method === 'HEAD' ? 'no body' : 'length'
      if (!isLengthSaid) head += `content-length: ${length}\r\n`
    } else if (method === 'HEAD') this.#framing = 'no body'
    else if (version === '1.1') head += 'transfer-encoding: chunked\r\n'
    else {
      this.#framing = 'until closed'
      this.isLast = true
    }
    return this.isLast
      ? `${head}connection: close\r\n\r\n`
      : `${head}connection: keep-alive\r\nkeep-alive: timeout=${KEPT_SECONDS}\r\n\r\n`
  }

  #sendHead(head: string): boolean {
    return head === '' || this.#sink.send(head)
  }

  #sendLast(head: string, last: Buffer | undefined): void {
    const sink = this.#sink
    if (this.#framing === 'chunks') {
      // Its head is sent already: else the length would be known.
      if (!last?.length) sink.send(LAST_CHUNK)
      else this.#sendFramed(`${last.length.toString(16)}\r\n`, last, '\r\n0\r\n\r\n')
    } else if (!last?.length) this.#sendHead(head)
    else if (head === '') sink.send(last)
    else this.#sendFramed(head, last, '')
  }

  #sendFramed(before: string, bytes: Buffer, after: string): boolean {
    if (bytes.length <= ONE_PIECE) return this.#sink.send(inOne(before, bytes, after))
    return this.#sink.sendTogether(after === '' ? [before, bytes] : [before, bytes, after])
  }
}

function inOne(before: string, bytes: Buffer, after: string): Buffer {
  const one = Buffer.allocUnsafe(before.length + bytes.length + after.length)
  one.write(before, 0, 'latin1')
  one.set(bytes, before.length)
  if (after !== '') one.write(after, before.length + bytes.length, 'latin1')
  return one
}
