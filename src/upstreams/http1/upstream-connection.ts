import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectSecure } from 'node:tls'
import { MAX_PARSE_BYTES } from '../../http1/llhttp.ts'
import { TransportError } from '../upstream-request.ts'
import { AnswerReader, type Step } from './response-reader.ts'
import type { CallUnderWay, Carrier } from './pending-request.ts'
import type { Origin } from './origin.ts'
import { type Resting, restForATurn } from './turn-end.ts'

/** Bytes up to which a request leaves as one piece: copying them costs less than a second write. */
const ONE_PIECE = 16_384
/** How long a connection is kept for the next call, where the upstream does not say how long it keeps it. */
const KEPT_MS = 10_000
/** No upstream's word keeps one for longer. */
const LONGEST_KEPT_MS = 60_000
/** A connection is given up so long before the upstream gives it up. */
const BEFORE_THE_UPSTREAM_MS = 1_000

/** Every connection reads into the same bytes: what is kept of them is copied. */
const READ_INTO = Buffer.allocUnsafeSlow(MAX_PARSE_BYTES)

/** What a connection tells of itself. */
export interface ConnectionOwner {
  /** It has carried a call. Whether to keep it for another: then `rested` follows, whatever becomes of it. */
  mayKeep(): boolean
  /** A turn later: it may carry another call, if it still is usable. */
  rested(connection: Connection): void
  /** Its upstream sent bytes that nobody asked for. */
  spokeUnasked(): void
  /** It is gone. */
  closed(connection: Connection): void
}

/** One connection to an upstream, and the call that it carries, one at a time. */
export class Connection implements Carrier, Resting {
  readonly #owner: ConnectionOwner
  readonly #socket: Socket
  readonly #reader = new AnswerReader()
  #call: CallUnderWay | undefined
  #isOpen = false
  #isClosed = false
  /** It has carried a call to its end. */
  #wasUsed = false
  #heardAnything = false
  #paused = false
  /** When it is given up, and what for. */
  #deadlineMs: number
  #deadlineIs: 'connect time-out' | 'first byte time-out' | 'idle time-out' | 'kept long enough'

  /** Begins to connect. `nowMs` and all times are of a clock that never goes back. */
  constructor(origin: Origin, connectMs: number, nowMs: number, owner: ConnectionOwner) {
    this.#owner = owner
    this.#deadlineMs = nowMs + connectMs
    this.#deadlineIs = 'connect time-out'
    const { host, port, lookup } = origin
    const options = {
      host,
      port,
      ...(lookup && { lookup }),
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 60_000,
      onread: {
        buffer: READ_INTO,
        callback: (length: number) => {
          this.#received(length)
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
    this.#socket.on(origin.isSecure ? 'secureConnect' : 'connect', () => this.#opened())
    if (origin.isSecure) this.#socket.on('session', (session: Buffer) => (origin.session = session))
    this.#socket.on('end', () => this.#ended())
    this.#socket.on('error', (error: NodeJS.ErrnoException) => this.#close(error.code ?? 'connection error'))
    this.#socket.on('close', () => this.#close('connection closed'))
  }

  /** It is open, and all that was given to it has been sent. */
  get isUsable(): boolean {
    // An answer to a request that was not read to its end: nobody knows what becomes of the rest.
    return !this.#isClosed && this.#socket.writableLength === 0
  }

  /** Carries a call; the connection is free, or new. */
  carry(call: CallUnderWay): void {
    this.#call = call
    call.carrier = this
    this.#paused = call.isPaused
    if (this.#isOpen) this.#write(call)
  }

  /** Called by `restForATurn` alone. */
  rested(): void {
    this.#owner.rested(this)
  }

  /** Gives it up if it is time. */
  tick(nowMs: number): void {
    if (nowMs < this.#deadlineMs || (this.#paused && this.#deadlineIs === 'idle time-out')) return
    this.#close(this.#deadlineIs)
  }

  /** Closes it. A call that it carries fails. */
  close(): void {
    this.#close('connection closed')
  }

  /** Called by `CallUnderWay` alone. */
  pause(): void {
    this.#paused = true
    this.#socket.pause()
  }

  /** Called by `CallUnderWay` alone. */
  resume(): void {
    this.#paused = false
    const { idleMs } = (this.#call as CallUnderWay).request
    if (this.#deadlineIs === 'idle time-out') this.#deadlineMs = performance.now() + idleMs
    this.#socket.resume()
  }

  /** Called by `CallUnderWay` alone. */
  abandon(): void {
    this.#call = undefined
    this.#close('connection closed')
  }

  #opened(): void {
    this.#isOpen = true
    if (this.#call) this.#write(this.#call)
    else this.#close('connection closed')
  }

  #write(call: CallUnderWay): void {
    const { head, body, firstByteMs } = call.request
    this.#heardAnything = false
    this.#deadlineMs = performance.now() + firstByteMs
    this.#deadlineIs = 'first byte time-out'
    this.#reader.expect()
    call.begun = true
    if (this.#paused) this.#socket.pause()
    const socket = this.#socket
    const length = head.length + body.length
    if (length <= ONE_PIECE) {
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

  #received(length: number): void {
    if (this.#isClosed) return
    // What comes now would be taken for the answer to the next call.
    if (!this.#call?.begun) {
      this.#owner.spokeUnasked()
      return this.#close('connection closed')
    }
    this.#heardAnything = true
    this.#heed(this.#reader.read(READ_INTO, length))
  }

  #ended(): void {
    if (this.#call?.begun) this.#heed(this.#reader.end(), 'connection closed')
    this.#close('connection closed')
  }

  #heed({ head, body, complete, surplus, broken }: Step, cause: string | undefined = broken): void {
    const call = this.#call as CallUnderWay
    const { answer, request } = call
    if (surplus) this.#owner.spokeUnasked()
    if (head || body) {
      this.#deadlineMs = performance.now() + request.idleMs
      this.#deadlineIs = 'idle time-out'
    }
    if (head) answer.started(head)
    // Whoever hears of it may give the call up.
    if (body && this.#call === call) answer.received(body)
    if (this.#call !== call) return
    if (complete) {
      this.#call = undefined
      call.isOver = true
      this.#wasUsed = true
      if (!this.#keep()) this.#close('connection closed')
      answer.ended()
    } else if (cause) this.#close(cause)
  }

  /**
   * Keeps it for another call, unless it must not carry one. It is free a turn later: until then it is read.
   */
  #keep(): boolean {
    const said = this.#reader.keepAliveSeconds
    const keptMs =
      said === undefined ? KEPT_MS : Math.min(said * 1000 - BEFORE_THE_UPSTREAM_MS, LONGEST_KEPT_MS)
    if (!this.#reader.mayBeKept || keptMs <= 0 || !this.#owner.mayKeep()) return false
    if (this.#paused) this.#socket.resume()
    this.#paused = false
    this.#deadlineMs = performance.now() + keptMs
    this.#deadlineIs = 'kept long enough'
    restForATurn(this)
    return true
  }

  #close(cause: string): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#socket.destroy()
    this.#reader.free()
    this.#owner.closed(this)
    const call = this.#call
    this.#call = undefined
    if (!call) return
    call.isOver = true
    const wasKept = this.#wasUsed && !this.#heardAnything && !cause.endsWith('time-out')
    call.answer.failed(new TransportError(cause, wasKept))
  }
}
