import { Socket, type SocketConstructorOpts } from 'node:net'
import process from 'node:process'
import type { CountedConnection } from './address-blocks.ts'
import { StepTimeout } from './client-timeouts.ts'
import type { ClientConnectionOwner } from './client-connection-owner.ts'
import type { ConnectionPeer } from './connection-limiter.ts'
import { HalfCloseTimeout } from './half-close-timeout.ts'
import {
  REQUEST_TIMEOUT,
  type RequestError,
  UNREADABLE_REQUEST_ERRORS,
  errorOfRequestHead,
} from './request-errors.ts'
import { type RequestHead, RequestReader } from './request-reader.ts'
import { CHUNK_OVERHEAD_BYTES, Request, type RequestSource } from './request.ts'
import { Response, type ResponseSink } from './response.ts'
import { toOriginForm } from './request-target.ts'
import { type UpgradableSource, UpgradedConnection } from './upgraded-connection.ts'
import { MAX_PARSE_BYTES } from '../parser/llhttp.ts'

/** Maximum bytes of memory for pipelined requests; reading pauses above it. */
const MAX_PIPELINED_BYTES = 65_536

/**
 * A connection of a client; it serves requests one after the other. A request that cannot be read gets an
 * error response and ends the connection, because it is unknown where the next request would begin.
 */
export class ClientConnection implements RequestSource, ResponseSink, UpgradableSource {
  /** Index in the server's list of connections; only the server changes it. */
  index = -1
  /** IP address of the client or its proxy. */
  readonly remoteAddress: string
  readonly peer: ConnectionPeer
  /** Number of bytes received. */
  bytesRead = 0
  readonly #owner: ClientConnectionOwner
  readonly #counted: CountedConnection
  readonly #socket: Socket
  readonly #reader: RequestReader
  #request: Request | undefined
  #response: Response | undefined
  /** Bytes received after the request that is being answered. */
  readonly #pipelined: Buffer[] = []
  /** Memory that `#pipelined` takes. */
  #pipelinedBytes = 0
  #isReadScheduled = false
  /**
   * `refused`: the last response is written but not sent yet. `upgraded`: the client speaks another protocol.
   * `ending`: nothing more is written.
   */
  #state: 'open' | 'refused' | 'upgraded' | 'ending' | 'closed' = 'open'
  #isPaused = false
  /** Whether the client has closed its side of the connection. */
  #isHalfClosed = false
  readonly #halfCloseTimeout = new HalfCloseTimeout(() => this.#abandon())
  /** Whether the response waits for an upstream, see `needsUpstream`. */
  #needsUpstream = false
  /** Whether what the client sends behind its request is dropped, and the connection ends after the response. */
  #isDropping = false
  /** Whether the response continues until the client leaves, see `lastsUntilClientLeaves`. */
  #isEndless = false
  /** Whether the end of a response waits to be taken by the operating system. */
  #isSending = false
  readonly #stepTimeout = new StepTimeout()
  #upgraded: UpgradedConnection | undefined

  constructor(
    accepted: Socket,
    owner: ClientConnectionOwner,
    peer: ConnectionPeer,
    counted: CountedConnection,
  ) {
    this.#owner = owner
    this.#reader = new RequestReader(owner.headerNames)
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
      this.#upgraded?.onDrain()
    })
    // Without a listener, an error would be thrown. The event 'close' follows each error, so nothing is done
    // here.
    socket.on('error', () => {})
    socket.on('close', () => this.#handleClose())
  }

  /** Whether no request is under way. */
  get isIdle(): boolean {
    return this.#stepTimeout.isBetweenRequests && this.#pipelined.length === 0
  }

  /** Whether a response can still be written. */
  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /**
   * Sends bytes of a response; only the response calls this. A client that reads nothing for a minute is
   * disconnected.
   */
  send(bytes: Buffer | string): boolean {
    this.#halfCloseTimeout.noteSent()
    return writeWithTimeout(this.#socket, bytes)
  }

  /**
   * Sends several pieces of a response in one write; only the response calls this. A client that reads
   * nothing for a minute is disconnected.
   */
  sendParts(parts: readonly (Buffer | string)[]): boolean {
    this.#halfCloseTimeout.noteSent()
    return writePiecesWithTimeout(this.#socket, parts)
  }

  /**
   * Pauses or resumes reading. Reading pauses while too many bytes are pipelined, the consumer of the body
   * requests it, or the end of a response has not been sent.
   */
  updateReading(): void {
    const isFull = this.#pipelinedBytes > MAX_PIPELINED_BYTES
    // If reading paused, an endless response would not notice that its client is gone.
    if (isFull && this.#isEndless && this.#state === 'open') return this.#leave()
    // The same holds for a response that waits for an upstream. Clients must be prepared for the end of a connection on
    // which they pipeline, and should pipeline nothing behind a POST (RFC 9112, section 9.3.2).
    if (isFull && this.#needsUpstream) this.#dropPipelined()
    const isPaused = (isFull && !this.#isDropping) || this.#isSending || (this.#request?.isPaused ?? false)
    if (isPaused === this.#isPaused) return
    this.#isPaused = isPaused
    if (isPaused) this.#socket.pause()
    else this.#socket.resume()
  }

  /** Closes the connection at once, without sending what waits to be sent. */
  destroy(): void {
    if (this.#state !== 'closed') this.#state = 'ending'
    this.#socket.destroy()
  }

  /** Checks the timeout of the current step; called once a second. */
  tick(): void {
    if (!this.#stepTimeout.tick()) return
    if (this.#state === 'open' && this.#stepTimeout.isAnswered) this.#refuse(REQUEST_TIMEOUT)
    else this.destroy()
  }

  #handleData(bytes: Buffer): void {
    this.bytesRead += bytes.length
    if (this.#state === 'upgraded') return this.#upgraded?.receive(bytes)
    if (this.#state !== 'open' || this.#isDropping) return
    if (this.#reader.isComplete || this.#pipelined.length > 0) {
      this.#pipelined.push(Buffer.from(bytes))
      this.#pipelinedBytes += bytes.length + CHUNK_OVERHEAD_BYTES
      this.updateReading()
    } else this.#read(bytes)
  }

  #read(bytes: Buffer): void {
    const reader = this.#reader
    const end = reader.read(bytes)
    if (end < bytes.length && !reader.unreadable) {
      this.#pipelined.unshift(Buffer.from(bytes.subarray(end)))
      this.#pipelinedBytes += bytes.length - end + CHUNK_OVERHEAD_BYTES
    }
    if (reader.hasBegun && this.#stepTimeout.isBetweenRequests) this.#stepTimeout.begin('head')
    if (reader.unreadable) return this.#refuse(UNREADABLE_REQUEST_ERRORS[reader.unreadable])
    if (this.#request) return this.#handleBody()
    if (!reader.head) return
    const error = errorOfRequestHead(reader.head)
    const head = error ? undefined : toOriginForm(reader.head)
    if (head) this.#begin(head)
    else this.#refuse(error ?? UNREADABLE_REQUEST_ERRORS.malformed)
  }

  #begin(head: RequestHead): void {
    const request = new Request(head, this)
    const response = new Response(this, head)
    this.#request = request
    this.#response = response
    this.#isEndless = false
    this.#needsUpstream = false
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
    reader.body.length = 0
    // The consumer may have responded already, so that `#request` is the next request.
    if (!isComplete || this.#request !== request) return
    this.#halfCloseTimeout.requestCompleted()
    if (this.#stepTimeout.step === 'body') this.#stepTimeout.begin('response')
    request.onBodyEnd('complete')
    this.updateReading()
    if (this.#stepTimeout.step === 'end of body') this.#conclude()
  }

  /** Called by the response when its end was written. */
  responseEnded(): void {
    if (this.#socket.writableLength === 0) return this.#onResponseSent()
    // If the client does not read the rest of the response, this timeout closes the connection.
    this.#isSending = true
    this.updateReading()
    this.#socket.setTimeout(WRITE_TIMEOUT_MS)
    this.#socket.write(Buffer.alloc(0), (error) => {
      this.#isSending = false
      // After an error, the event 'close' does the rest.
      if (error) return
      this.#socket.setTimeout(0)
      this.updateReading()
      this.#onResponseSent()
    })
  }

  #onResponseSent(): void {
    if (this.#state === 'ending' || this.#state === 'closed') return
    const response = this.#response as Response
    response.onConnectionEnd('finished')
    this.#counted.markIdle()
    if (this.#state === 'refused' || response.closesImmediately) return this.#end()
    if (this.#reader.isComplete) return this.#conclude()
    if (this.#isHalfClosed) return this.#end()
    // Closing the connection now would reset it while the client still sends; the response could be lost.
    this.#request?.discard()
    this.#stepTimeout.begin('end of body')
  }

  /** Ends the exchange when both request and response are complete. */
  #conclude(): void {
    const { closesConnection } = this.#response as Response
    this.#request = undefined
    this.#response = undefined
    const hasNoMore = this.#isDropping || (this.#isHalfClosed && this.#pipelined.length === 0)
    if (closesConnection || hasNoMore) return this.#end()
    this.#reader.next()
    this.#stepTimeout.begin('next request')
    this.#readSoon()
  }

  // The next request is read in another turn of the event loop, so that a client with many pipelined requests
  // does not delay other clients.
  #readSoon(): void {
    if (this.#isReadScheduled || this.#pipelined.length === 0) return
    this.#isReadScheduled = true
    setImmediate(() => {
      this.#isReadScheduled = false
      if (this.#state !== 'open' || this.#reader.isComplete) return
      const bytes = this.#pipelined.shift() as Buffer
      this.#pipelinedBytes -= bytes.length + CHUNK_OVERHEAD_BYTES
      this.#read(bytes)
      if (!this.#reader.isComplete) this.#readSoon()
      if (this.#isHalfClosed && this.isOpen) this.#finishHalfClosed()
      this.updateReading()
    })
  }

  /** Closes the sending side when everything is sent, and ignores bytes that still arrive. */
  #end(): void {
    if (this.#state === 'ending' || this.#state === 'closed') return
    this.#state = 'ending'
    this.#stepTimeout.begin('close')
    this.#dropPipelined()
    this.#socket.end()
    this.updateReading()
  }

  #dropPipelined(): void {
    this.#isDropping = true
    this.#pipelined.length = 0
    this.#pipelinedBytes = 0
  }

  #refuse(error: RequestError): void {
    if (this.#state !== 'open') return
    const request = this.#request
    const response = this.#response
    // A response that has begun cannot be replaced by an error response.
    if (response && (response.headersSent || response.isHeadSent)) return this.destroy()
    const { status, headers, body } = this.#owner.refusalFor(error, this.#reader.head?.url)
    this.#request = undefined
    this.#stepTimeout.begin('response')
    // The listener must not write its response any more, because an error response takes its place.
    response?.onConnectionEnd('aborted')
    request?.onBodyEnd('aborted')
    const method = this.#reader.head?.method ?? 'GET'
    this.#response = new Response(this, { method, version: '1.1', keepAlive: false, headers: {} })
    this.#response.closesImmediately = true
    this.#response.writeHead(status, { ...response?.presetHeaders, ...headers }).end(body)
    if (this.isOpen) this.#state = 'refused'
  }

  /**
   * Ends HTTP on the connection; only the response calls this. Bytes that have arrived behind the request are the
   * first of the other protocol.
   */
  upgrade(): UpgradedConnection | undefined {
    if (this.#state !== 'open' || !this.#reader.isComplete || this.#isHalfClosed) return undefined
    this.#state = 'upgraded'
    this.#request = undefined
    this.#response = undefined
    this.#stepTimeout.begin('response')
    this.#halfCloseTimeout.reset()
    this.#reader.free()
    const upgraded = new UpgradedConnection(this)
    this.#upgraded = upgraded
    // The caller sets its listeners first.
    process.nextTick(() => {
      const pieces = this.#pipelined.splice(0)
      this.#pipelinedBytes = 0
      for (const piece of pieces) upgraded.receive(piece)
      if (this.#isHalfClosed) upgraded.receiveEnd()
    })
    return upgraded
  }

  /** Pauses or resumes reading of an upgraded connection; only that calls this. */
  setUpgradedPaused(isPaused: boolean): void {
    if (isPaused === this.#isPaused || this.#state !== 'upgraded') return
    this.#isPaused = isPaused
    if (isPaused) this.#socket.pause()
    else this.#socket.resume()
  }

  /** States whether an upgraded connection is idle; only that calls this. */
  setUpgradedIdle(isIdle: boolean): void {
    if (isIdle) this.#counted.markIdle()
    else this.#counted.markBusy()
  }

  /** Closes the sending side of an upgraded connection; only that calls this. */
  endUpgraded(): void {
    if (this.#state === 'upgraded') this.#socket.end()
  }

  /** Makes room for another connection, at once or as soon as an upgraded one has taken leave of its client. */
  displace(): void {
    if (this.#upgraded?.onDisplaced) this.#upgraded.onDisplaced()
    else this.destroy()
  }

  #handleEnd(): void {
    this.#isHalfClosed = true
    if (this.#state === 'upgraded' && this.#pipelined.length === 0) return this.#upgraded?.receiveEnd()
    if (this.#state !== 'open') return
    if (this.#isEndless) return this.#leave()
    const isInTheMiddle = this.#response?.isHeadSent && this.#reader.isComplete && !this.#isSending
    if (isInTheMiddle && !this.#halfCloseTimeout.isRecentlyComplete) this.#end()
    else this.#finishHalfClosed()
  }

  /**
   * Handles the end of the client's data: complete requests are answered, an incomplete request is refused.
   */
  #finishHalfClosed(): void {
    // `#onResponseSent` continues when the response is sent.
    if (this.#isSending) return
    const response = this.#response
    if (response && this.#reader.isComplete) this.#halfCloseTimeout.start(response.isHeadSent)
    else if (this.#pipelined.length > 0) return
    else if (this.#reader.hasBegun && !this.#reader.isComplete && !response?.isFinished)
      this.#refuse(UNREADABLE_REQUEST_ERRORS.malformed)
    else this.#end()
  }

  /**
   * Called by the response before a request to an upstream: from now on, the response may be aborted if the
   * client has closed its side.
   */
  needsUpstream(): void {
    this.#halfCloseTimeout.needsUpstream()
    this.#needsUpstream = true
    this.updateReading()
  }

  /**
   * Called by a response that continues until the client leaves. A client that closes its side, even directly
   * after its request, waits for nothing more and is gone.
   */
  lastsUntilClientLeaves(): void {
    this.#isEndless = true
    if (this.#isHalfClosed && this.#state === 'open') this.#leave()
    else this.updateReading()
  }

  #leave(): void {
    this.#response?.onConnectionEnd('aborted')
    this.#end()
  }

  #abandon(): void {
    if (this.#response?.hasEnded !== false) return
    // A client that reads slowly or not at all is the matter of another timeout (`WRITE_TIMEOUT_MS`).
    if (this.#socket.writableLength > 0) return this.#halfCloseTimeout.noteSent()
    this.#leave()
  }

  #handleClose(): void {
    this.#state = 'closed'
    this.#reader.free()
    this.#halfCloseTimeout.reset()
    this.#counted.release()
    this.#owner.onClosed(this)
    this.#upgraded?.destroy()
    this.#request?.onBodyEnd('aborted')
    this.#response?.onConnectionEnd('aborted')
  }
}

/** Milliseconds that a client may read nothing while data waits to be sent. */
const WRITE_TIMEOUT_MS = 60_000

/** Writes bytes. Returns false, and starts a timeout, if too much data waits to be sent. */
function writeWithTimeout(socket: Socket, bytes: Buffer | string): boolean {
  const isBelowLimit = socket.write(bytes, 'latin1')
  if (!isBelowLimit) socket.setTimeout(WRITE_TIMEOUT_MS)
  return isBelowLimit
}

/**
 * Writes several pieces in one go. Returns false, and starts a timeout, if too much data waits to be sent.
 * Data that the operating system takes at once does not count, because no `drain` event follows then.
 */
function writePiecesWithTimeout(socket: Socket, parts: readonly (Buffer | string)[]): boolean {
  socket.cork()
  for (const part of parts) socket.write(part, 'latin1')
  socket.uncork()
  const isDrainPending = socket.writableNeedDrain && socket.writableLength > 0
  if (isDrainPending) socket.setTimeout(WRITE_TIMEOUT_MS)
  return !isDrainPending
}

/** Buffer that all connections read into; its bytes are handled before the next read. */
const READ_BUFFER = Buffer.allocUnsafeSlow(MAX_PARSE_BYTES)

/**
 * Property of Node's sockets that contains the connection's handle in the operating system. It is not public,
 * but has existed for fifteen years.
 */
const HANDLE = '_handle'

/**
 * Wraps an accepted connection in a socket that reads into one shared buffer, so that not each read allocates
 * 64 KiB. Node has this option (`onread`) only for sockets that a program opens, so the handle is moved to
 * such a socket. If there is no handle, the socket is read as usual. The bytes given to `onData` are
 * overwritten by the next read.
 */
function withSharedReadBuffer(accepted: Socket, onData: (bytes: Buffer) => void): Socket {
  const handle: unknown = Reflect.get(accepted, HANDLE)
  if (!handle) return accepted.on('data', onData).resume()
  const options = {
    handle,
    allowHalfOpen: true,
    onread: {
      buffer: READ_BUFFER,
      callback(length: number) {
        onData(length === READ_BUFFER.length ? READ_BUFFER : READ_BUFFER.subarray(0, length))
        return true
      },
    },
  }
  // The accepted socket must not close the handle, which now belongs to the new socket.
  Reflect.set(accepted, HANDLE, null)
  accepted.destroy()
  return new Socket(options as unknown as SocketConstructorOpts)
}
