import { type Socket, connect as connectPlain, isIP } from 'node:net'
import { type ConnectionOptions, connect as connectSecure } from 'node:tls'
import { MAX_PARSE_BYTES } from '../parser/llhttp.ts'
import { TransportError } from './upstream-request.ts'
import { type ReadResult, ResponseReader } from './response-reader.ts'
import type { PendingRequest, RequestCarrier } from './pending-request.ts'
import type { Origin } from './origin.ts'
import { openTunnel } from './tunnel.ts'
import { type ReusableConnection, notifyAfterTurn } from './event-loop-turn.ts'
import type { OutgoingBody } from './outgoing-body.ts'

/**
 * Maximum number of bytes of head and body together for which they are copied into one write: up to this
 * size, copying costs less than a second write.
 */
const MAX_COALESCED_BYTES = 16_384
/** Milliseconds that a connection may be idle if the upstream states no timeout. */
const KEEP_ALIVE_MS = 10_000
/** Maximum idle timeout in milliseconds, even if the upstream states a longer one. */
const MAX_KEEP_ALIVE_MS = 60_000
/** Connections are closed this many milliseconds before the upstream's own idle timeout. */
const KEEP_ALIVE_MARGIN_MS = 1_000
/**
 * Ticks after the last byte of a request, about five seconds, in which a break of a reused connection means that
 * the upstream did not get the request. A busy upstream may be late to close an idle connection, and ticks are
 * counted in place of time because the gateway may be late to see it.
 */
const MAX_TICKS_UNTIL_LOST = 50

/** Buffer that all connections read into; bytes that are needed later are copied. */
const READ_BUFFER = Buffer.allocUnsafeSlow(MAX_PARSE_BYTES)

/** The owner of a connection (its pool): the methods that the connection calls. */
export interface UpstreamConnectionOwner {
  /** Names, in lower case, of response headers to read in addition to `content-type` and `retry-after`. */
  readonly readHeaders: ReadonlySet<string>
  /** Returns whether to keep a connection after a request. If so, `onIdle` is always called later. */
  mayKeepAlive(): boolean
  /**
   * Called one turn of the event loop after a request: the connection may carry another request if it is
   * still usable.
   */
  onIdle(connection: UpstreamConnection): void
  /** Notes that the upstream sent bytes without a request. */
  onUnsolicited(): void
  /** Notes that the connection is closed. */
  onClosed(connection: UpstreamConnection): void
}

/** Connection to an upstream; carries one request at a time. */
export class UpstreamConnection implements RequestCarrier, ReusableConnection {
  readonly #owner: UpstreamConnectionOwner
  #socket: Socket
  readonly #reader: ResponseReader
  #request: PendingRequest | undefined
  #isOpen = false
  #isClosed = false
  /** Whether the connection has completed a request. */
  #wasUsed = false
  #hasReceived = false
  /** Ticks since everything that was written was sent. */
  #ticksSinceSent = 0
  #isPaused = false
  /** Body that is still being sent; undefined if there is none. */
  #sending: BodySending | undefined
  /** Time in milliseconds at which the connection is closed; `#deadlineReason` says why. */
  #deadlineMs: number
  #deadlineReason: 'connect time-out' | 'first byte time-out' | 'idle time-out' | 'kept long enough'

  /** Begins to connect to `origin`. `nowMs` and all other times are those of `performance.now()`. */
  constructor(origin: Origin, connectMs: number, nowMs: number, owner: UpstreamConnectionOwner) {
    this.#owner = owner
    this.#reader = new ResponseReader(owner.readHeaders)
    this.#deadlineMs = nowMs + connectMs
    this.#deadlineReason = 'connect time-out'
    const { proxy, lookup } = origin
    const { host, port } = proxy ?? origin
    const kept = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 }
    const options = { host, port, ...(lookup && { lookup }), ...kept }
    if (proxy) {
      this.#socket = connectPlain(options)
      this.#watch(this.#socket)
      openTunnel(this.#socket, origin, proxy, (failure) => this.#handleTunnel(origin, failure))
      return
    }
    const read = {
      onread: {
        buffer: READ_BUFFER,
        callback: (length: number) => {
          this.#handleData(length)
          return true
        },
      },
    }
    this.#socket = origin.isSecure
      ? this.#secured(origin, { ...options, ...read })
      : connectPlain({ ...options, ...read })
    if (!origin.isSecure) this.#socket.on('connect', () => this.#handleOpen())
    this.#watch(this.#socket)
  }

  #secured(origin: Origin, options: ConnectionOptions): Socket {
    const { host, session } = origin
    const socket = connectSecure({
      ...options,
      ALPNProtocols: ['http/1.1'],
      ...(isIP(host) === 0 && { servername: host }),
      ...(session && { session }),
    })
    socket.on('secureConnect', () => this.#handleOpen())
    socket.on('session', (latest: Buffer) => (origin.session = latest))
    return socket
  }

  #watch(socket: Socket): void {
    socket.on('end', this.#onEnd)
    socket.on('error', (error: NodeJS.ErrnoException) => this.#close(error.code ?? 'connection error'))
    socket.on('close', () => this.#close('connection closed'))
  }

  // Only a new socket can read into the shared buffer, so bytes from a tunnel are copied into it.
  #handleTunnel(origin: Origin, failure: string | undefined): void {
    if (failure !== undefined) return this.#close(failure)
    const tunnel = this.#socket
    if (origin.isSecure) {
      tunnel.off('end', this.#onEnd)
      this.#socket = this.#secured(origin, { socket: tunnel })
      this.#watch(this.#socket)
    }
    this.#socket.on('data', (chunk: Buffer) => this.#handleChunk(chunk))
    this.#socket.resume()
    if (!origin.isSecure) this.#handleOpen()
  }

  #handleChunk(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; at += MAX_PARSE_BYTES) {
      const part = chunk.subarray(at, at + MAX_PARSE_BYTES)
      READ_BUFFER.set(part)
      this.#handleData(part.length)
    }
  }

  /** Whether the connection is open and has sent everything that was written. */
  get isUsable(): boolean {
    // An upstream may respond before it has read the whole request.
    return !this.#isClosed && this.#socket.writableLength === 0 && !this.#sending
  }

  /** Sends a request; the connection must be idle or new. */
  carry(request: PendingRequest): void {
    this.#request = request
    request.carrier = this
    this.#isPaused = request.isPaused
    if (this.#isOpen) this.#write(request)
  }

  /**
   * Offers the connection to its pool for another request, once all sockets were read; only `notifyAfterTurn`
   * calls this.
   */
  turnPassed(): void {
    this.#owner.onIdle(this)
  }

  /** Closes the connection if its deadline has passed. */
  tick(nowMs: number): void {
    if (this.isUsable) this.#ticksSinceSent += 1
    if (nowMs < this.#deadlineMs || (this.#isPaused && this.#deadlineReason === 'idle time-out')) return
    this.#close(this.#deadlineReason)
  }

  /** Closes the connection; its request fails. */
  close(): void {
    this.#close('connection closed')
  }

  /** Stops reading the response until `resume`; only `PendingRequest` calls this. */
  pause(): void {
    this.#isPaused = true
    this.#socket.pause()
  }

  /** Continues reading the response; only `PendingRequest` calls this. */
  resume(): void {
    this.#isPaused = false
    const { idleMs } = (this.#request as PendingRequest).request
    if (this.#deadlineReason === 'idle time-out') this.#deadlineMs = performance.now() + idleMs
    this.#socket.resume()
  }

  /** Gives up the request and closes the connection; only `PendingRequest` calls this. */
  abandon(): void {
    this.#request = undefined
    this.#close('connection closed')
  }

  #handleOpen(): void {
    this.#isOpen = true
    const request = this.#request
    if (!request) return this.#close('connection closed')
    // The deadline is still that of connecting: the time at which connecting began, plus `connectMs`.
    request.connectDurationMs = Math.ceil(performance.now() - this.#deadlineMs + request.request.connectMs)
    this.#write(request)
  }

  #write(request: PendingRequest): void {
    const { head, body, responseMs } = request.request
    this.#hasReceived = false
    this.#ticksSinceSent = 0
    this.#deadlineMs = performance.now() + responseMs
    this.#deadlineReason = 'first byte time-out'
    this.#reader.expect()
    request.isSent = true
    if (this.#isPaused) this.#socket.pause()
    const socket = this.#socket
    const length = head.length + body.length
    if (!Buffer.isBuffer(body)) {
      socket.write(head, 'latin1')
      this.#sending = new BodySending(socket, body, {
        // While the body is being sent, the timeout until the first byte of the response starts again with
        // each piece that the upstream takes.
        onProgress: () => this.#restartFirstByte(responseMs),
        onSent: () => (this.#sending = undefined),
        onFailed: () => this.#close('the request body cannot be read'),
      })
    } else if (length <= MAX_COALESCED_BYTES) {
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

  #restartFirstByte(responseMs: number): void {
    if (this.#deadlineReason === 'first byte time-out') this.#deadlineMs = performance.now() + responseMs
  }

  #handleData(length: number): void {
    if (this.#isClosed) return
    // Bytes without a request would be taken for the response to the next request.
    if (!this.#request?.isSent) {
      this.#owner.onUnsolicited()
      return this.#close('connection closed')
    }
    this.#hasReceived = true
    this.#handleResult(this.#reader.read(READ_BUFFER, length))
  }

  readonly #onEnd = (): void => {
    if (this.#request?.isSent) this.#handleResult(this.#reader.end(), 'connection closed')
    this.#close('connection closed')
  }

  #handleResult(
    { head, body, isComplete, hasSurplus, error }: ReadResult,
    cause: string | undefined = error,
  ): void {
    const pending = this.#request as PendingRequest
    const { listener, request } = pending
    if (hasSurplus) this.#owner.onUnsolicited()
    const nowMs = performance.now()
    if (head || body) {
      this.#deadlineMs = nowMs + request.idleMs
      this.#deadlineReason = 'idle time-out'
    }
    if (head) listener.onHead(head)
    // The listener may cancel the request.
    if (body && this.#request === pending) listener.onData(body)
    if (this.#request !== pending) return
    if (isComplete) {
      this.#request = undefined
      pending.isOver = true
      this.#wasUsed = true
      if (!this.#keepAlive(nowMs)) this.#close('connection closed')
      listener.onEnd()
    } else if (cause) this.#close(cause)
  }

  /**
   * Keeps the connection for another request if that is allowed. The pool gets it only at the end of the next
   * turn of the event loop. Until then it is read, to notice bytes that the upstream sends without a request.
   */
  #keepAlive(nowMs: number): boolean {
    const statedSeconds = this.#reader.keepAliveSeconds
    const keepAliveMs =
      statedSeconds === undefined
        ? KEEP_ALIVE_MS
        : Math.min(statedSeconds * 1000 - KEEP_ALIVE_MARGIN_MS, MAX_KEEP_ALIVE_MS)
    if (this.#sending || !this.#reader.isReusable || keepAliveMs <= 0 || !this.#owner.mayKeepAlive())
      return false
    if (this.#isPaused) this.#socket.resume()
    this.#isPaused = false
    this.#deadlineMs = nowMs + keepAliveMs
    this.#deadlineReason = 'kept long enough'
    notifyAfterTurn(this)
    return true
  }

  #close(cause: string): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#sending?.stop()
    this.#sending = undefined
    this.#socket.destroy()
    this.#reader.free()
    this.#owner.onClosed(this)
    const request = this.#request
    this.#request = undefined
    if (!request) return
    request.isOver = true
    const isEarly = !this.#hasReceived && this.#ticksSinceSent <= MAX_TICKS_UNTIL_LOST
    const wasReused = this.#wasUsed && isEarly && !cause.endsWith('time-out')
    request.listener.onError(new TransportError(cause, wasReused))
  }
}

/** Callbacks for sending a body. None is called after `stop`. */
interface SendingListener {
  /** The upstream took more bytes. */
  onProgress(): void
  /** All bytes were given to the connection. */
  onSent(): void
  /** The body cannot be read. */
  onFailed(): void
}

/** Sends a body piece by piece; each piece waits until the upstream has taken the previous one. */
class BodySending {
  readonly #socket: Socket
  readonly #body: OutgoingBody
  readonly #listener: SendingListener
  #isStopped = false

  constructor(socket: Socket, body: OutgoingBody, listener: SendingListener) {
    this.#socket = socket
    this.#body = body
    this.#listener = listener
    this.#send().catch(() => {
      if (!this.#isStopped) this.#listener.onFailed()
    })
  }

  /** Stops sending; the rest of the body is not sent. */
  stop(): void {
    this.#isStopped = true
  }

  async #send(): Promise<void> {
    for (let position = 0; position < this.#body.length; ) {
      const piece = await this.#body.read(position)
      if (this.#isStopped) return
      position += piece.length
      await new Promise<void>((resolve) => this.#socket.write(piece, () => resolve()))
      if (this.#isStopped) return
      this.#listener.onProgress()
    }
    this.#listener.onSent()
  }
}
