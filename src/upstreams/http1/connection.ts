import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectSecure } from 'node:tls'
import { MOST_AT_ONCE } from '../../http1/llhttp.ts'
import { type Answer, type Exchange, TransportError } from '../exchange.ts'
import { AnswerReader, type Step } from './answer-reader.ts'
import { departSoon } from './departures.ts'
import type { Origin } from './origin.ts'

/** Bytes up to which a request leaves as one piece: copying them costs less than a second write. */
const ONE_PIECE = 16_384
/** How long a connection is kept for the next call, where the upstream does not say how long it keeps it. */
const KEPT_MS = 10_000
/** No upstream's word keeps one for longer. */
const LONGEST_KEPT_MS = 60_000
/** A connection is given up so long before the upstream gives it up. */
const BEFORE_THE_UPSTREAM_MS = 1_000

/** Every connection reads into the same bytes: what is kept of them is copied. */
const READ_INTO = Buffer.allocUnsafeSlow(MOST_AT_ONCE)

/** A request as it goes out. */
export interface WireRequest {
  /** Request line and headers, to the empty line; one byte a character. */
  readonly head: string
  readonly body: Buffer
  readonly firstByteMs: number
  readonly idleMs: number
}

/** What a connection tells of itself. */
export interface ConnectionOwner {
  /** It can carry another call. */
  becameFree(connection: Connection): void
  /** It is gone. */
  closed(connection: Connection): void
}

/** One connection to an upstream, and the call that it carries, one at a time. */
export class Connection {
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

  /** Carries a call; the connection is free, or new. */
  carry(request: WireRequest, answer: Answer): Exchange {
    const call = new CallUnderWay(this, request, answer)
    this.#call = call
    if (this.#isOpen) departSoon(this)
    return call
  }

  /** Sends the request that it is to carry. Called by `departSoon`. */
  depart(): void {
    if (this.#call && !this.#call.begun) this.#write(this.#call)
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
    // Nobody asked: what comes now would be taken for the answer to the next call.
    if (!this.#call) return this.#close('connection closed')
    this.#heardAnything = true
    this.#heed(this.#reader.read(READ_INTO, length))
  }

  #ended(): void {
    if (this.#call?.begun) this.#heed(this.#reader.end(), 'connection closed')
    this.#close('connection closed')
  }

  #heed({ head, body, complete, broken }: Step, cause: string | undefined = broken): void {
    const call = this.#call as CallUnderWay
    const { answer, request } = call
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
      if (broken || !this.#reader.mayBeKept) this.#close('connection closed')
      // Node hears a turn later that TLS has sent what it was given.
      else if (this.#socket.writableLength > 0) setImmediate(() => this.#keep())
      else this.#keep()
      answer.ended()
    } else if (cause) this.#close(cause)
  }

  #keep(): void {
    // An answer to a request that was not read to its end: nobody knows what becomes of the rest.
    if (this.#isClosed || this.#socket.writableLength > 0) return this.#close('connection closed')
    const said = this.#reader.keepAliveSeconds
    const keptMs =
      said === undefined ? KEPT_MS : Math.min(said * 1000 - BEFORE_THE_UPSTREAM_MS, LONGEST_KEPT_MS)
    if (keptMs <= 0) return this.#close('connection closed')
    if (this.#paused) this.#socket.resume()
    this.#paused = false
    this.#deadlineMs = performance.now() + keptMs
    this.#deadlineIs = 'kept long enough'
    this.#owner.becameFree(this)
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

/** A call on its connection, until it is over. */
class CallUnderWay implements Exchange {
  readonly request: WireRequest
  readonly answer: Answer
  begun = false
  isOver = false
  readonly #connection: Connection

  constructor(connection: Connection, request: WireRequest, answer: Answer) {
    this.#connection = connection
    this.request = request
    this.answer = answer
  }

  pause(): void {
    if (!this.isOver) this.#connection.pause()
  }

  resume(): void {
    if (!this.isOver) this.#connection.resume()
  }

  cancel(): void {
    if (this.isOver) return
    this.isOver = true
    this.#connection.abandon()
  }
}
