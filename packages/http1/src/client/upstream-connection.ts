import { type Socket, connect as connectPlain, isIP } from 'node:net'
import { type ConnectionOptions, connect as connectSecure } from 'node:tls'
import { MAX_PARSE_BYTES } from '../parser/llhttp.ts'
import { TransportError } from './upstream-request.ts'
import { type ReadResult, ResponseReader } from './response-reader.ts'
import type { PendingRequest, RequestCarrier } from './pending-request.ts'
import type { Origin } from './origin.ts'
import { openTunnel } from './tunnel.ts'
import { type UsedConnection, notifyAfterTurn } from './turn-end.ts'
import type { OutgoingBody } from './outgoing-body.ts'

/** Size up to which head and body are copied together: that costs less than a second write. */
const MAX_COALESCED_BYTES = 16_384
/** Idle timeout of a connection where the upstream states none. */
const KEEP_ALIVE_MS = 10_000
/** Longest idle timeout that an upstream can set. */
const MAX_KEEP_ALIVE_MS = 60_000
/** Connections are closed this many milliseconds before the upstream's own idle timeout. */
const KEEP_ALIVE_MARGIN_MS = 1_000

/** Buffer that all connections read into; whatever is kept is copied. */
const READ_BUFFER = Buffer.allocUnsafeSlow(MAX_PARSE_BYTES)

/** Owner of upstream connections: the pool, as a connection calls it. */
export interface UpstreamConnectionOwner {
  /** Headers of a response that are read beside `content-type` and `retry-after`, in lower case. */
  readonly readHeaders: ReadonlySet<string>
  /** Asks whether to keep a connection after a request; if so, `onIdle` follows in any case. */
  mayKeepAlive(): boolean
  /** Notes a turn later that the connection may carry another request, if it is still usable. */
  onIdle(connection: UpstreamConnection): void
  /** Notes that the upstream sent unsolicited bytes. */
  onUnsolicited(): void
  /** Notes that the connection is closed. */
  onClosed(connection: UpstreamConnection): void
}

/** Connection to an upstream; carries one request at a time. */
export class UpstreamConnection implements RequestCarrier, UsedConnection {
  readonly #owner: UpstreamConnectionOwner
  #socket: Socket
  readonly #reader: ResponseReader
  #request: PendingRequest | undefined
  #isOpen = false
  #isClosed = false
  /** Whether a request was completed on it. */
  #wasUsed = false
  #hasReceived = false
  #isPaused = false
  /** Body of the request that is still being sent, if any. */
  #sending: BodySending | undefined
  /** Time at which the connection is closed, for the reason below. */
  #deadlineMs: number
  #deadlineReason: 'connect time-out' | 'first byte time-out' | 'idle time-out' | 'kept long enough'

  /** Begins to connect. `nowMs` and all times are of a monotonic clock. */
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

  // A socket that exists already cannot be told to read into a shared buffer.
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

  /** Whether it is open, and all that was written has been sent. */
  get isUsable(): boolean {
    // An upstream may have answered without reading the request to its end.
    return !this.#isClosed && this.#socket.writableLength === 0 && !this.#sending
  }

  /** Sends a request; the connection must be idle or new. */
  carry(request: PendingRequest): void {
    this.#request = request
    request.carrier = this
    this.#isPaused = request.isPaused
    if (this.#isOpen) this.#write(request)
  }

  /** Called by `notifyAfterTurn` alone. */
  turnPassed(): void {
    this.#owner.onIdle(this)
  }

  /** Closes the connection if its deadline has passed. */
  tick(nowMs: number): void {
    if (nowMs < this.#deadlineMs || (this.#isPaused && this.#deadlineReason === 'idle time-out')) return
    this.#close(this.#deadlineReason)
  }

  /** Closes the connection; its request fails. */
  close(): void {
    this.#close('connection closed')
  }

  /** Called by `PendingRequest` alone. */
  pause(): void {
    this.#isPaused = true
    this.#socket.pause()
  }

  /** Called by `PendingRequest` alone. */
  resume(): void {
    this.#isPaused = false
    const { idleMs } = (this.#request as PendingRequest).request
    if (this.#deadlineReason === 'idle time-out') this.#deadlineMs = performance.now() + idleMs
    this.#socket.resume()
  }

  /** Called by `PendingRequest` alone. */
  abandon(): void {
    this.#request = undefined
    this.#close('connection closed')
  }

  #handleOpen(): void {
    this.#isOpen = true
    const request = this.#request
    if (!request) return this.#close('connection closed')
    // The deadline is still the one of connecting.
    request.connectDurationMs = Math.ceil(performance.now() - this.#deadlineMs + request.request.connectMs)
    this.#write(request)
  }

  #write(request: PendingRequest): void {
    const { head, body, responseMs } = request.request
    this.#hasReceived = false
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
        // The upstream waits for the rest, not the other way round.
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
    // Unsolicited bytes would be taken for the response to the next request.
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
    if (head || body) {
      this.#deadlineMs = performance.now() + request.idleMs
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
      if (!this.#keepAlive()) this.#close('connection closed')
      listener.onEnd()
    } else if (cause) this.#close(cause)
  }

  /** Keeps the connection for another request, if allowed. It is offered after the current turn, and read until then. */
  #keepAlive(): boolean {
    const statedSeconds = this.#reader.keepAliveSeconds
    const keepAliveMs =
      statedSeconds === undefined
        ? KEEP_ALIVE_MS
        : Math.min(statedSeconds * 1000 - KEEP_ALIVE_MARGIN_MS, MAX_KEEP_ALIVE_MS)
    if (this.#sending || !this.#reader.isReusable || keepAliveMs <= 0 || !this.#owner.mayKeepAlive())
      return false
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
    this.#sending?.stop()
    this.#sending = undefined
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

/** Receiver of the progress of a body. Nothing is called after `stop`. */
interface SendingListener {
  /** The upstream took more bytes. */
  onProgress(): void
  /** All bytes were given to the connection. */
  onSent(): void
  /** The body cannot be read. */
  onFailed(): void
}

/** Sends a body piece by piece, each when the upstream has taken the one before. */
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

  /** Ends the sending, wherever it is. */
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
