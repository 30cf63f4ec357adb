import type { Socket } from 'node:net'
import type { GatewayError } from '../errors.ts'
import type { CountedConnection } from './address-blocks.ts'
import { StepTimeout } from './step-timeout.ts'
import type { ClientConnectionOwner } from './client-connection-owner.ts'
import type { Peer } from './connection-shares.ts'
import { HalfCloseTimeout } from './half-close-timeout.ts'
import { unreadableRequest, headError, requestTimeout } from './refusals.ts'
import { type RequestHead, RequestReader } from './request-reader.ts'
import { Request, type RequestSource } from './request.ts'
import { withSharedReadBuffer } from './shared-read-buffer.ts'
import { Response, type ResponseSink } from './response.ts'
import { inOriginForm } from './request-target.ts'

/** How long a caller may leave what was sent to it unread. */
const WRITE_TIMEOUT_MS = 60_000
/** Bytes that may come ahead of their turn; beyond them the connection is not read. */
const MAX_PIPELINED_BYTES = 65_536
const EMPTY = Buffer.alloc(0)

/**
 * A caller's connection: its requests one after the other, and the answer to each. What is no request is
 * answered once, in the words of the API, and ends it: nothing after it can be trusted.
 */
export class ClientConnection implements RequestSource, ResponseSink {
  /** Of the server's roster alone. */
  place = -1
  /** The address at the other end. */
  readonly remoteAddress: string
  readonly peer: Peer
  /** Bytes that have come on it. */
  bytesRead = 0
  readonly #owner: ClientConnectionOwner
  readonly #counted: CountedConnection
  readonly #socket: Socket
  readonly #reader = new RequestReader()
  #request: Request | undefined
  #response: Response | undefined
  /** What came after the request that is being answered. */
  readonly #pipelined: Buffer[] = []
  #pipelinedBytes = 0
  #isReadScheduled = false
  /** Open, or refused: the last word is said, and not sent yet. Ending: nothing more is said. */
  #state: 'open' | 'refused' | 'ending' | 'closed' = 'open'
  #isPaused = false
  /** The other side says nothing more. */
  #isHalfClosed = false
  readonly #halfCloseTimeout = new HalfCloseTimeout(() => this.#abandon())
  /** The end of an answer is on its way, and not all of it with the system yet. */
  #isSending = false
  readonly #stepTimeout = new StepTimeout()

  constructor(accepted: Socket, owner: ClientConnectionOwner, peer: Peer, counted: CountedConnection) {
    this.#owner = owner
    this.peer = peer
    this.#counted = counted
    this.remoteAddress = accepted.remoteAddress ?? ''
    const socket = withSharedReadBuffer(accepted, (bytes) => this.#handleData(bytes))
    this.#socket = socket
    socket.on('end', () => this.#handleEnd())
    socket.on('timeout', () => this.destroy())
    socket.on('drain', () => {
      if (!this.#isSending) socket.setTimeout(0)
      this.#response?.onDrain()
    })
    // The end of it comes next.
    socket.on('error', () => {})
    socket.on('close', () => this.#handleClose())
  }

  /** Whether nothing is under way on it. */
  get isIdle(): boolean {
    return this.#stepTimeout.isBetweenRequests && this.#pipelined.length === 0
  }

  /** Whether anything can still be said on it. */
  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** Called by its response alone. Who reads nothing of it for a minute is given up. */
  send(bytes: Buffer | string): boolean {
    const isBelowLimit =
      typeof bytes === 'string' ? this.#socket.write(bytes, 'latin1') : this.#socket.write(bytes)
    if (!isBelowLimit) this.#socket.setTimeout(WRITE_TIMEOUT_MS)
    return isBelowLimit
  }

  /**
   * Reads on, or no further: while too much has come ahead of its turn, a body's taker asks for a pause, or
   * an answer's end is unsent.
   */
  updateReading(): void {
    const isPaused = this.#pipelinedBytes > MAX_PIPELINED_BYTES || this.#isSending || (this.#request?.isPaused ?? false)
    if (isPaused === this.#isPaused) return
    this.#isPaused = isPaused
    if (isPaused) this.#socket.pause()
    else this.#socket.resume()
  }

  /** Breaks it off. */
  destroy(): void {
    if (this.#state !== 'closed') this.#state = 'ending'
    this.#socket.destroy()
  }

  /** Looks whether something takes too long. Called once a second. */
  tick(): void {
    if (!this.#stepTimeout.tick()) return
    if (this.#state === 'open' && this.#stepTimeout.isAnswered) this.#refuse(requestTimeout())
    else this.destroy()
  }

  #handleData(bytes: Buffer): void {
    this.bytesRead += bytes.length
    if (this.#state !== 'open') return
    if (this.#reader.isComplete || this.#pipelined.length > 0) {
      this.#pipelined.push(Buffer.from(bytes))
      this.#pipelinedBytes += bytes.length
      this.updateReading()
    } else this.#read(bytes)
  }

  #read(bytes: Buffer): void {
    const reader = this.#reader
    const end = reader.read(bytes)
    if (end < bytes.length && !reader.unreadable) {
      this.#pipelined.unshift(Buffer.from(bytes.subarray(end)))
      this.#pipelinedBytes += bytes.length - end
    }
    if (reader.hasBegun && this.#stepTimeout.isBetweenRequests) this.#stepTimeout.begin('head')
    if (reader.unreadable) return this.#refuse(unreadableRequest(reader.unreadable))
    if (this.#request) return this.#handleBody()
    if (!reader.head) return
    const trouble = headError(reader.head)
    const head = trouble ? undefined : inOriginForm(reader.head)
    if (head) this.#begin(head)
    else this.#refuse(trouble ?? unreadableRequest('malformed'))
  }

  #begin(head: RequestHead): void {
    const request = new Request(head, this)
    const response = new Response(this, head)
    this.#request = request
    this.#response = response
    this.#halfCloseTimeout.reset()
    this.#counted.markBusy()
    this.#stepTimeout.begin('body')
    this.#handleBody()
    this.#owner.onRequest(request, response, this.peer)
  }

  #handleBody(): void {
    const reader = this.#reader
    const request = this.#request as Request
    const isComplete = reader.isComplete
    if (reader.body.length > 0) request.onChunks(reader.body)
    // Whoever took that may have answered, and the next request may have begun.
    if (!isComplete || this.#request !== request) return
    this.#halfCloseTimeout.requestCompleted()
    if (this.#stepTimeout.step === 'body') this.#stepTimeout.begin('answer')
    request.onBodyEnd('whole')
    this.updateReading()
    if (this.#stepTimeout.step === 'end of body') this.#conclude()
  }

  /** Called by its response alone: that was its end. */
  responseEnded(): void {
    if (this.#socket.writableLength === 0) return this.#handleSent()
    // Who does not read the rest is not waited for.
    this.#isSending = true
    this.updateReading()
    this.#socket.setTimeout(WRITE_TIMEOUT_MS)
    this.#socket.write(EMPTY, (error) => {
      this.#isSending = false
      // Then the connection is closed, and told so.
      if (error) return
      this.#socket.setTimeout(0)
      this.updateReading()
      this.#handleSent()
    })
  }

  #handleSent(): void {
    if (this.#state === 'ending' || this.#state === 'closed') return
    const response = this.#response as Response
    response.onConnectionEnd('finished')
    this.#counted.markIdle()
    if (this.#state === 'refused' || response.closesImmediately) return this.#end()
    if (this.#reader.isComplete) return this.#conclude()
    if (this.#isHalfClosed) return this.#end()
    // Who is still sending would lose the answer if the connection ended now.
    this.#request?.discard()
    this.#stepTimeout.begin('end of body')
  }

  /** Request and answer are both complete. */
  #conclude(): void {
    const { closesConnection: isLast } = this.#response as Response
    this.#request = undefined
    this.#response = undefined
    if (isLast || (this.#isHalfClosed && this.#pipelined.length === 0)) return this.#end()
    this.#reader.next()
    this.#stepTimeout.begin('next request')
    this.#readSoon()
  }

  // In a turn of its own: who sends many at once is not served before all others.
  #readSoon(): void {
    if (this.#isReadScheduled || this.#pipelined.length === 0) return
    this.#isReadScheduled = true
    setImmediate(() => {
      this.#isReadScheduled = false
      if (this.#state !== 'open' || this.#reader.isComplete) return
      const bytes = this.#pipelined.shift() as Buffer
      this.#pipelinedBytes -= bytes.length
      this.#read(bytes)
      if (!this.#reader.isComplete) this.#readSoon()
      if (this.#isHalfClosed && this.isOpen) this.#finishHalfClosed()
      this.updateReading()
    })
  }

  /** Nothing more is said: what is on its way is sent, and what comes is not heard. */
  #end(): void {
    if (this.#state === 'ending' || this.#state === 'closed') return
    this.#state = 'ending'
    this.#stepTimeout.begin('hang-up')
    this.#pipelined.length = 0
    this.#pipelinedBytes = 0
    this.#socket.end()
    this.updateReading()
  }

  #refuse(error: GatewayError): void {
    if (this.#state !== 'open') return
    const request = this.#request
    const response = this.#response
    // In the middle of an answer nothing can be said any more.
    if (response?.headersSent) return this.destroy()
    const { status, headers, body } = this.#owner.refusalFor(error, this.#reader.head?.url)
    this.#request = undefined
    this.#stepTimeout.begin('answer')
    // Nobody else says anything from here on.
    response?.onConnectionEnd('lost')
    request?.onBodyEnd('cut')
    const method = this.#reader.head?.method ?? 'GET'
    this.#response = new Response(this, { method, version: '1.1', keepAlive: false, headers: {} })
    this.#response.closesImmediately = true
    this.#response.writeHead(status, { ...response?.presetHeaders, ...headers }).end(body)
    if (this.isOpen) this.#state = 'refused'
  }

  #handleEnd(): void {
    this.#isHalfClosed = true
    if (this.#state !== 'open') return
    const isInTheMiddle = this.#response?.isHeadSent && this.#reader.isComplete && !this.#isSending
    if (isInTheMiddle && !this.#halfCloseTimeout.isRecentlyComplete) this.#end()
    else this.#finishHalfClosed()
  }

  /** Nothing more comes: what was asked is answered, and what is incomplete will never be whole. */
  #finishHalfClosed(): void {
    // Goes on once that is sent.
    if (this.#isSending) return
    const response = this.#response
    if (response && this.#reader.isComplete) this.#halfCloseTimeout.start()
    else if (this.#pipelined.length > 0) return
    else if (this.#reader.hasBegun && !this.#reader.isComplete && !response?.isFinished)
      this.#refuse(unreadableRequest('malformed'))
    else this.#end()
  }

  /** Called by its response alone: an upstream is about to be asked. */
  needsUpstream(): void {
    this.#halfCloseTimeout.needsUpstream()
  }

  #abandon(): void {
    if (!this.#response || this.#response.isHeadSent) return
    this.#response.onConnectionEnd('lost')
    this.#end()
  }

  #handleClose(): void {
    this.#state = 'closed'
    this.#reader.free()
    this.#halfCloseTimeout.reset()
    this.#counted.release()
    this.#owner.onClosed(this)
    this.#request?.onBodyEnd('cut')
    this.#response?.onConnectionEnd('lost')
  }
}
