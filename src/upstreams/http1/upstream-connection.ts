import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectSecure } from 'node:tls'
import { MAX_PARSE_BYTES } from '../../http1/llhttp.ts'
import { TransportError } from '../upstream-request.ts'
import { ResponseReader, type ReadResult } from './response-reader.ts'
import type { PendingRequest, RequestCarrier } from './pending-request.ts'
import type { Origin } from './origin.ts'
import { type UsedConnection, notifyAfterTurn } from './turn-end.ts'

/** Bytes up to which a request leaves as one piece: copying them costs less than a second write. */
const MAX_COALESCED_BYTES = 16_384
/** How long a connection is kept for the next call, where the upstream does not say how long it keeps it. */
const KEEP_ALIVE_MS = 10_000
/** No upstream's word keeps one for longer. */
const MAX_KEEP_ALIVE_MS = 60_000
/** A connection is given up so long before the upstream gives it up. */
const KEEP_ALIVE_MARGIN_MS = 1_000

/** Every connection reads into the same bytes: what is kept of them is copied. */
const READ_BUFFER = Buffer.allocUnsafeSlow(MAX_PARSE_BYTES)

/** What a connection tells of itself. */
export interface UpstreamConnectionOwner {
  /** It has carried a call. Whether to keep it for another: then `rested` follows, whatever becomes of it. */
  mayKeepAlive(): boolean
  /** A turn later: it may carry another call, if it still is usable. */
  onIdle(connection: UpstreamConnection): void
  /** Its upstream sent bytes that nobody asked for. */
  onUnsolicited(): void
  /** It is gone. */
  onClosed(connection: UpstreamConnection): void
}

/** One connection to an upstream, and the call that it carries, one at a time. */
export class UpstreamConnection implements RequestCarrier, UsedConnection {
  readonly #owner: UpstreamConnectionOwner
  readonly #socket: Socket
  readonly #reader = new ResponseReader()
  #request: PendingRequest | undefined
  #isOpen = false
  #isClosed = false
  /** It has carried a call to its end. */
  #wasUsed = false
  #hasReceived = false
  #isPaused = false
  /** When it is given up, and what for. */
  #deadlineMs: number
  #deadlineReason: 'connect time-out' | 'first byte time-out' | 'idle time-out' | 'kept long enough'

  /** Begins to connect. `nowMs` and all times are of a clock that never goes back. */
  constructor(origin: Origin, connectMs: number, nowMs: number, owner: UpstreamConnectionOwner) {
    this.#owner = owner
    this.#deadlineMs = nowMs + connectMs
    this.#deadlineReason = 'connect time-out'
    const { host, port, lookup } = origin
    const options = {
      host,
      port,
      ...(lookup && { lookup }),
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 60_000,
      onread: {
        buffer: READ_BUFFER,
        callback: (length: number) => {
          this.#handleData(length)
          return true
        },
      },
    }
    this.#socket = origin.isSecure
      ? connectSecure({
          ...options,
          ALPNProtocols: ['http/1.1'],
          ...(isIP(host) === 0 && { servername: host }),
          ...(origin.session && { session: origin.session }),
        })
      : connectPlain(options)
    this.#socket.on(origin.isSecure ? 'secureConnect' : 'connect', () => this.#handleOpen())
    if (origin.isSecure) this.#socket.on('session', (session: Buffer) => (origin.session = session))
    this.#socket.on('end', () => this.#handleEnd())
    this.#socket.on('error', (error: NodeJS.ErrnoException) => this.#close(error.code ?? 'connection error'))
    this.#socket.on('close', () => this.#close('connection closed'))
  }

  /** It is open, and all that was given to it has been sent. */
  get isUsable(): boolean {
    // An answer to a request that was not read to its end: nobody knows what becomes of the rest.
    return !this.#isClosed && this.#socket.writableLength === 0
  }

  /** Carries a call; the connection is free, or new. */
  carry(request: PendingRequest): void {
    this.#request = request
    request.carrier = this
    this.#isPaused = request.isPaused
    if (this.#isOpen) this.#write(request)
  }

  /** Called by `restForATurn` alone. */
  turnPassed(): void {
    this.#owner.onIdle(this)
  }

  /** Gives it up if it is time. */
  tick(nowMs: number): void {
    if (nowMs < this.#deadlineMs || (this.#isPaused && this.#deadlineReason === 'idle time-out')) return
    this.#close(this.#deadlineReason)
  }

  /** Closes it. A call that it carries fails. */
  close(): void {
    this.#close('connection closed')
  }

  /** Called by `CallUnderWay` alone. */
  pause(): void {
    this.#isPaused = true
    this.#socket.pause()
  }

  /** Called by `CallUnderWay` alone. */
  resume(): void {
    this.#isPaused = false
    const { idleMs } = (this.#request as PendingRequest).request
    if (this.#deadlineReason === 'idle time-out') this.#deadlineMs = performance.now() + idleMs
    this.#socket.resume()
  }

  /** Called by `CallUnderWay` alone. */
  abandon(): void {
    this.#request = undefined
    this.#close('connection closed')
  }

  #handleOpen(): void {
    this.#isOpen = true
    if (this.#request) this.#write(this.#request)
    else this.#close('connection closed')
  }

  #write(request: PendingRequest): void {
    const { head, body, firstByteMs } = request.request
    this.#hasReceived = false
    this.#deadlineMs = performance.now() + firstByteMs
    this.#deadlineReason = 'first byte time-out'
    this.#reader.expect()
    request.isSent = true
    if (this.#isPaused) this.#socket.pause()
    const socket = this.#socket
    const length = head.length + body.length
    if (length <= MAX_COALESCED_BYTES) {
      const bytes = Buffer.allocUnsafe(length)
      bytes.write(head, 'latin1')
      bytes.set(body, head.length)
      socket.write(bytes)
    } else {
      socket.cork()
      socket.write(head, 'latin1')
      socket.write(body)
      socket.uncork()
    }
  }

  #handleData(length: number): void {
    if (this.#isClosed) return
    // What comes now would be taken for the answer to the next call.
    if (!this.#request?.isSent) {
      this.#owner.onUnsolicited()
      return this.#close('connection closed')
    }
    this.#hasReceived = true
    this.#handleResult(this.#reader.read(READ_BUFFER, length))
  }

  #handleEnd(): void {
    if (this.#request?.isSent) this.#handleResult(this.#reader.end(), 'connection closed')
    this.#close('connection closed')
  }

  #handleResult({ head, body, isComplete: complete, hasSurplus: surplus, error: broken }: ReadResult, cause: string | undefined = broken): void {
    const pending = this.#request as PendingRequest
    const { listener: answer, request } = pending
    if (surplus) this.#owner.onUnsolicited()
    if (head || body) {
      this.#deadlineMs = performance.now() + request.idleMs
      this.#deadlineReason = 'idle time-out'
    }
    if (head) answer.onHead(head)
    // Whoever hears of it may give the call up.
    if (body && this.#request === pending) answer.onData(body)
    if (this.#request !== pending) return
    if (complete) {
      this.#request = undefined
      pending.isOver = true
      this.#wasUsed = true
      if (!this.#keepAlive()) this.#close('connection closed')
      answer.onEnd()
    } else if (cause) this.#close(cause)
  }

  /**
   * Keeps it for another call, unless it must not carry one. It is free a turn later: until then it is read.
   */
  #keepAlive(): boolean {
    const statedSeconds = this.#reader.keepAliveSeconds
    const keepAliveMs =
      statedSeconds === undefined ? KEEP_ALIVE_MS : Math.min(statedSeconds * 1000 - KEEP_ALIVE_MARGIN_MS, MAX_KEEP_ALIVE_MS)
    if (!this.#reader.isReusable || keepAliveMs <= 0 || !this.#owner.mayKeepAlive()) return false
    if (this.#isPaused) this.#socket.resume()
    this.#isPaused = false
    this.#deadlineMs = performance.now() + keepAliveMs
    this.#deadlineReason = 'kept long enough'
    notifyAfterTurn(this)
    return true
  }

  #close(cause: string): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#socket.destroy()
    this.#reader.free()
    this.#owner.onClosed(this)
    const request = this.#request
    this.#request = undefined
    if (!request) return
    request.isOver = true
    const wasReused = this.#wasUsed && !this.#hasReceived && !cause.endsWith('time-out')
    request.listener.onError(new TransportError(cause, wasReused))
  }
}
