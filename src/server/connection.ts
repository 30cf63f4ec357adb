import type { Socket } from 'node:net'
import { GatewayError } from '../errors.ts'
import { type RequestHead, RequestReader, type Unreadable } from './request-reader.ts'
import { Request, type RequestSource } from './request.ts'
import { readingShared } from './shared-bytes.ts'
import { KEPT_SECONDS, Response, type ResponseSink } from './response.ts'

/** Looks of the server's clock, one a second, that things may take: a head, from its first byte or the connection's on; a request. */
const HEAD_LOOKS = 10
const REQUEST_LOOKS = 60
/** How long somebody may go on sending a body that was answered already. */
const UNREAD_LOOKS = 20
/** How long somebody who was refused may take to hang up. */
const HANG_UP_LOOKS = 2
/** Of what is awaited, that of which nobody has heard yet: who takes too long is told so. */
const UNHEARD_OF: ReadonlySet<Awaited> = new Set(['first request', 'head', 'body'])
/** How long a caller may leave the end of an answer unread. */
const UNHEARD_MS = 60_000
const NOTHING = Buffer.alloc(0)

type Awaited = 'first request' | 'head' | 'body' | 'answer' | 'end of body' | 'next request' | 'hang-up'

/** An answer that the server gives itself. */
export interface Refusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** What a connection tells of itself, and asks. */
export interface ConnectionOwner {
  asked(request: Request, response: Response): void
  refusal(error: GatewayError): Refusal
  closed(connection: Connection): void
}

/**
 * A caller's connection: its requests one after the other, and the answer to each. What is no request is answered once, in the words
 * of the API, and ends it: nothing after it can be trusted.
 */
export class Connection implements RequestSource, ResponseSink {
  /** Of the server's roster alone. */
  place = -1
  readonly #owner: ConnectionOwner
  readonly #socket: Socket
  readonly #reader = new RequestReader()
  readonly remoteAddress: string
  bytesRead = 0
  #request: Request | undefined
  #response: Response | undefined
  /** What came after the request that is being answered. */
  #waiting: Buffer[] = []
  #state: 'open' | 'ending' | 'closed' = 'open'
  /** Looks that are left for what is awaited. */
  #looks = HEAD_LOOKS
  #awaits: Awaited = 'first request'

  constructor(accepted: Socket, owner: ConnectionOwner) {
    this.#owner = owner
    const socket = readingShared(accepted, (bytes) => this.#received(bytes))
    this.#socket = socket
    this.remoteAddress = socket.remoteAddress ?? ''
    socket.on('end', () => this.#ended())
    socket.on('timeout', () => socket.destroy())
    socket.on('drain', () => this.#response?.drained())
    // The end of it comes next.
    socket.on('error', () => {})
    socket.on('close', () => this.#closed())
  }

  /** Whether nothing is under way on it. */
  get isIdle(): boolean {
    return this.#awaits === 'first request' || this.#awaits === 'next request'
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  get unsentBytes(): number {
    return this.#socket.writableLength
  }

  send(bytes: Buffer | string): boolean {
    return this.#socket.write(bytes)
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /** Looks whether something takes too long. Called once a second. */
  look(): void {
    if (this.#awaits === 'answer') return
    this.#looks -= 1
    if (this.#looks >= 0) return
    if (UNHEARD_OF.has(this.#awaits)) this.#refuse(tooSlow())
    else this.#socket.destroy()
  }

  #await(what: Awaited, looks: number): void {
    this.#awaits = what
    this.#looks = looks
  }

  #received(bytes: Buffer): void {
    this.bytesRead += bytes.length
    if (this.#state !== 'open') return
    if (this.#reader.isComplete || this.#waiting.length > 0) {
      this.#waiting.push(Buffer.from(bytes))
      this.#socket.pause()
    } else this.#read(bytes)
  }

  #read(bytes: Buffer): void {
    const reader = this.#reader
    const end = reader.read(bytes, 0)
    if (end < bytes.length) this.#waiting.unshift(Buffer.from(bytes.subarray(end)))
    if (!this.#request) {
      if (reader.hasBegun && this.isIdle) this.#await('head', HEAD_LOOKS)
      if (reader.unreadable) return this.#refuse(told(reader.unreadable))
      if (!reader.head) return
      const trouble = headTrouble(reader.head)
      if (trouble) return this.#refuse(trouble)
      this.#begin(reader.head)
      return
    }
    if (reader.unreadable) return this.#refuse(told(reader.unreadable))
    this.#bodyCame()
  }

  #begin(head: RequestHead): void {
    const request = new Request(head, this)
    const response = new Response(this, head)
    this.#request = request
    this.#response = response
    this.#await('body', REQUEST_LOOKS)
    this.#bodyCame()
    this.#owner.asked(request, response)
  }

  #bodyCame(): void {
    const reader = this.#reader
    const request = this.#request as Request
    if (reader.body.length > 0) request.received(reader.body)
    if (!reader.isComplete) return
    if (this.#awaits === 'body') this.#awaits = 'answer'
    request.ended('whole')
    if (this.#awaits === 'end of body') this.#conclude()
  }

  answered(): void {
    if (this.#socket.writableLength === 0) return this.#sent()
    // Who does not read the rest is not waited for.
    this.#socket.setTimeout(UNHEARD_MS)
    this.#socket.write(NOTHING, () => {
      this.#socket.setTimeout(0)
      if (this.#state === 'open') this.#sent()
    })
  }

  #sent(): void {
    const response = this.#response as Response
    response.closed('finished')
    if (this.#reader.isComplete) return this.#conclude()
    // Who is still sending would lose the answer if the connection ended now.
    if (response.hangsUp) return this.#end()
    this.#request?.throwAway()
    this.#await('end of body', UNREAD_LOOKS)
  }

  /** Request and answer are both complete. */
  #conclude(): void {
    const { isLast } = this.#response as Response
    this.#request = undefined
    this.#response = undefined
    if (isLast) return this.#end()
    this.#reader.next()
    this.#await('next request', KEPT_SECONDS)
    // In a turn of its own: who sends many at once is not served before all others.
    if (this.#waiting.length > 0) setImmediate(() => this.#readWaiting())
  }

  #readWaiting(): void {
    while (this.#state === 'open' && !this.#reader.isComplete) {
      const bytes = this.#waiting.shift()
      if (!bytes) return this.resume()
      this.#read(bytes)
    }
  }

  /** Nothing more is said: what is on its way is sent, and what comes is not heard. */
  #end(): void {
    if (this.#state !== 'open') return
    this.#state = 'ending'
    this.#await('hang-up', HANG_UP_LOOKS)
    this.#waiting = []
    this.#socket.end()
    this.#socket.resume()
  }

  #refuse(error: GatewayError): void {
    if (this.#state !== 'open') return
    const response = this.#response
    // In the middle of an answer nothing can be said any more.
    if (response?.headersSent) return this.destroy()
    const { status, headers, body } = this.#owner.refusal(error)
    const request = this.#request
    this.#request = undefined
    this.#response = new Response(this, { method: 'GET', version: '1.1', keepAlive: false, headers: {} })
    this.#response.hangsUp = true
    this.#response.writeHead(status, headers).end(body)
    request?.ended('cut')
    response?.closed('lost')
  }

  #ended(): void {
    if (this.#state !== 'open') return
    const response = this.#response
    // What was said is still sent. Who only listens on, while an answer is made, cannot be told from who is gone.
    if (response?.hasEnded && !response.isFinished) response.isLast = true
    else if (this.#reader.hasBegun && !this.#reader.isComplete && !response?.isFinished)
      this.#refuse(told('malformed'))
    else this.#end()
  }

  #closed(): void {
    this.#state = 'closed'
    this.#reader.free()
    this.#owner.closed(this)
    this.#request?.ended('cut')
    this.#response?.closed('lost')
  }
}

function told(unreadable: Unreadable): GatewayError {
  return unreadable === 'malformed'
    ? new GatewayError('invalid_request', 'this is no valid HTTP request')
    : new GatewayError('headers_too_large', 'the request has more than 16 KiB of headers, or more than 100')
}

function tooSlow(): GatewayError {
  return new GatewayError('request_timeout', 'the request was not complete in time')
}

/**
 * What makes a head unfit to be answered, though its grammar is right: parties on the way may read it in another way, or it asks for what
 * is not HTTP/1.
 */
function headTrouble({ method, version, hosts, headers }: RequestHead): GatewayError | undefined {
  if (version !== '1.1' && version !== '1.0')
    return new GatewayError('invalid_request', 'this is no valid HTTP request')
  if (method === 'CONNECT')
    return new GatewayError('invalid_request', 'this is no proxy: CONNECT is not served')
  if (hosts > 1 || (hosts === 0 && version !== '1.0'))
    return new GatewayError('invalid_request', 'the request is expected to have one Host header')
  const { expect } = headers
  if (expect !== undefined && expect.toLowerCase() !== '100-continue')
    return new GatewayError('expectation_failed', 'of what a request may expect, 100-continue alone is known')
  return undefined
}
