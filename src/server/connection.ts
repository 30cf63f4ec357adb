import type { Socket } from 'node:net'
import type { GatewayError } from '../errors.ts'
import type { Seat } from './address-blocks.ts'
import { Awaiting } from './awaiting.ts'
import type { ConnectionOwner } from './connection-owner.ts'
import type { Peer } from './connection-shares.ts'
import { Patience } from './patience.ts'
import { cannotBeRead, headTrouble, tooSlow } from './refusals.ts'
import { type RequestHead, RequestReader } from './request-reader.ts'
import { Request, type RequestSource } from './request.ts'
import { readingShared } from './shared-bytes.ts'
import { Response, type ResponseSink } from './response.ts'
import { inOriginForm } from './target.ts'

/** How long a caller may leave what was sent to it unread. */
const UNREAD_MS = 60_000
/** Bytes that may come ahead of their turn; beyond them the connection is not read. */
const MOST_AHEAD = 65_536
const NOTHING = Buffer.alloc(0)

/**
 * A caller's connection: its requests one after the other, and the answer to each. What is no request is answered once, in the words
 * of the API, and ends it: nothing after it can be trusted.
 */
export class Connection implements RequestSource, ResponseSink {
  /** Of the server's roster alone. */
  place = -1
  /** The address at the other end. */
  readonly remoteAddress: string
  readonly peer: Peer
  /** Bytes that have come on it. */
  bytesRead = 0
  readonly #owner: ConnectionOwner
  readonly #seat: Seat
  readonly #socket: Socket
  readonly #reader = new RequestReader()
  #request: Request | undefined
  #response: Response | undefined
  /** What came after the request that is being answered. */
  readonly #ahead: Buffer[] = []
  #aheadBytes = 0
  #isReadScheduled = false
  /** Open, or refused: the last word is said, and not sent yet. Ending: nothing more is said. */
  #state: 'open' | 'refused' | 'ending' | 'closed' = 'open'
  #isPaused = false
  /** The other side says nothing more. */
  #isHalfClosed = false
  readonly #patience = new Patience(() => this.#giveUp())
  /** The end of an answer is on its way, and not all of it with the system yet. */
  #isSending = false
  readonly #awaiting = new Awaiting()

  constructor(accepted: Socket, owner: ConnectionOwner, peer: Peer, seat: Seat) {
    this.#owner = owner
    this.peer = peer
    this.#seat = seat
    this.remoteAddress = accepted.remoteAddress ?? ''
    const socket = readingShared(accepted, (bytes) => this.#received(bytes))
    this.#socket = socket
    socket.on('end', () => this.#ended())
    socket.on('timeout', () => this.destroy())
    socket.on('drain', () => {
      if (!this.#isSending) socket.setTimeout(0)
      this.#response?.drained()
    })
    // The end of it comes next.
    socket.on('error', () => {})
    socket.on('close', () => this.#closed())
  }

  /** Whether nothing is under way on it. */
  get isIdle(): boolean {
    return this.#awaiting.isRequest && this.#ahead.length === 0
  }

  /** Whether anything can still be said on it. */
  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** Called by its response alone. Who reads nothing of it for a minute is given up. */
  send(bytes: Buffer | string): boolean {
    const isTaken = this.#socket.write(bytes, 'latin1')
    if (!isTaken) this.#socket.setTimeout(UNREAD_MS)
    return isTaken
  }

  /** The same of several, in one write: it is false where the system did not take all of them at once. */
  sendTogether(parts: readonly (Buffer | string)[]): boolean {
    const socket = this.#socket
    socket.cork()
    for (const part of parts) socket.write(part, 'latin1')
    socket.uncork()
    if (socket.writableLength > 0) socket.setTimeout(UNREAD_MS)
    return socket.writableLength === 0
  }

  /** Reads on, or no further: while too much has come ahead of its turn, a body's taker asks for a pause, or an answer's end is unsent. */
  flow(): void {
    const isPaused = this.#aheadBytes > MOST_AHEAD || this.#isSending || (this.#request?.isPaused ?? false)
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
  look(): void {
    if (!this.#awaiting.look()) return
    if (this.#state === 'open' && this.#awaiting.isTold) this.#refuse(tooSlow())
    else this.destroy()
  }

  #received(bytes: Buffer): void {
    this.bytesRead += bytes.length
    if (this.#state !== 'open') return
    if (this.#reader.isComplete || this.#ahead.length > 0) {
      this.#ahead.push(Buffer.from(bytes))
      this.#aheadBytes += bytes.length
      this.flow()
    } else this.#read(bytes)
  }

  #read(bytes: Buffer): void {
    const reader = this.#reader
    const end = reader.read(bytes)
    if (end < bytes.length && !reader.unreadable) {
      this.#ahead.unshift(Buffer.from(bytes.subarray(end)))
      this.#aheadBytes += bytes.length - end
    }
    if (reader.hasBegun && this.#awaiting.isRequest) this.#awaiting.begin('head')
    if (reader.unreadable) return this.#refuse(cannotBeRead(reader.unreadable))
    if (this.#request) return this.#bodyCame()
    if (!reader.head) return
    const trouble = headTrouble(reader.head)
    const head = trouble ? undefined : inOriginForm(reader.head)
    if (head) this.#begin(head)
    else this.#refuse(trouble ?? cannotBeRead('malformed'))
  }

  #begin(head: RequestHead): void {
    const request = new Request(head, this)
    const response = new Response(this, head)
    this.#request = request
    this.#response = response
    this.#patience.reset()
    this.#seat.work()
    this.#awaiting.begin('body')
    this.#bodyCame()
    this.#owner.asked(request, response, this.peer)
  }

  #bodyCame(): void {
    const reader = this.#reader
    const request = this.#request as Request
    const isComplete = reader.isComplete
    if (reader.body.length > 0) request.received(reader.body)
    // Whoever took that may have answered, and the next request may have begun.
    if (!isComplete || this.#request !== request) return
    this.#patience.requestIsWhole()
    if (this.#awaiting.what === 'body') this.#awaiting.begin('answer')
    request.ended('whole')
    this.flow()
    if (this.#awaiting.what === 'end of body') this.#conclude()
  }

  /** Called by its response alone: that was its end. */
  answered(): void {
    if (this.#socket.writableLength === 0) return this.#sent()
    // Who does not read the rest is not waited for.
    this.#isSending = true
    this.flow()
    this.#socket.setTimeout(UNREAD_MS)
    this.#socket.write(NOTHING, (error) => {
      this.#isSending = false
      // Then the connection is closed, and told so.
      if (error) return
      this.#socket.setTimeout(0)
      this.flow()
      this.#sent()
    })
  }

  #sent(): void {
    if (this.#state === 'ending' || this.#state === 'closed') return
    const response = this.#response as Response
    response.closed('finished')
    this.#seat.rest()
    if (this.#state === 'refused' || response.hangsUp) return this.#end()
    if (this.#reader.isComplete) return this.#conclude()
    if (this.#isHalfClosed) return this.#end()
    // Who is still sending would lose the answer if the connection ended now.
    this.#request?.throwAway()
    this.#awaiting.begin('end of body')
  }

  /** Request and answer are both complete. */
  #conclude(): void {
    const { isLast } = this.#response as Response
    this.#request = undefined
    this.#response = undefined
    if (isLast || (this.#isHalfClosed && this.#ahead.length === 0)) return this.#end()
    this.#reader.next()
    this.#awaiting.begin('next request')
    this.#readSoon()
  }

  // In a turn of its own: who sends many at once is not served before all others.
  #readSoon(): void {
    if (this.#isReadScheduled || this.#ahead.length === 0) return
    this.#isReadScheduled = true
    setImmediate(() => {
      this.#isReadScheduled = false
      if (this.#state !== 'open' || this.#reader.isComplete) return
      const bytes = this.#ahead.shift() as Buffer
      this.#aheadBytes -= bytes.length
      this.#read(bytes)
      if (!this.#reader.isComplete) this.#readSoon()
      if (this.#isHalfClosed && this.isOpen) this.#heardAll()
      this.flow()
    })
  }

  /** Nothing more is said: what is on its way is sent, and what comes is not heard. */
  #end(): void {
    if (this.#state === 'ending' || this.#state === 'closed') return
    this.#state = 'ending'
    this.#awaiting.begin('hang-up')
    this.#ahead.length = 0
    this.#aheadBytes = 0
    this.#socket.end()
    this.flow()
  }

  #refuse(error: GatewayError): void {
    if (this.#state !== 'open') return
    const request = this.#request
    const response = this.#response
    // In the middle of an answer nothing can be said any more.
    if (response?.headersSent) return this.destroy()
    const { status, headers, body } = this.#owner.refusal(error, this.#reader.head?.url)
    this.#request = undefined
    this.#awaiting.begin('answer')
    // Nobody else says anything from here on.
    response?.closed('lost')
    request?.ended('cut')
    const method = this.#reader.head?.method ?? 'GET'
    this.#response = new Response(this, { method, version: '1.1', keepAlive: false, headers: {} })
    this.#response.hangsUp = true
    this.#response.writeHead(status, { ...response?.early, ...headers }).end(body)
    if (this.isOpen) this.#state = 'refused'
  }

  #ended(): void {
    this.#isHalfClosed = true
    if (this.#state !== 'open') return
    const isInTheMiddle = this.#response?.hasBegun && this.#reader.isComplete && !this.#isSending
    if (isInTheMiddle && !this.#patience.isFresh) this.#end()
    else this.#heardAll()
  }

  /** Nothing more comes: what was asked is answered, and what is incomplete will never be whole. */
  #heardAll(): void {
    // Goes on once that is sent.
    if (this.#isSending) return
    const response = this.#response
    if (response && this.#reader.isComplete) this.#patience.begin()
    else if (this.#ahead.length > 0) return
    else if (this.#reader.hasBegun && !this.#reader.isComplete && !response?.isFinished)
      this.#refuse(cannotBeRead('malformed'))
    else this.#end()
  }

  /** Called by its response alone: an upstream is about to be asked. */
  needsUpstream(): void {
    this.#patience.needsUpstream()
  }

  #giveUp(): void {
    if (!this.#response || this.#response.hasBegun) return
    this.#response.closed('lost')
    this.#end()
  }

  #closed(): void {
    this.#state = 'closed'
    this.#reader.free()
    this.#patience.reset()
    this.#seat.leave()
    this.#owner.closed(this)
    this.#request?.ended('cut')
    this.#response?.closed('lost')
  }
}
