import { TransportError, type UpstreamRequest, type UpstreamResponseListener } from '@sluice/http1'
import type { Channel } from '../../domain/records/channel.ts'
import type { Request } from '../../http/request.ts'
import type { ResponseMemory } from '../../limits/request-memory.ts'
import type { UpstreamKey } from '../../upstreams/key-ring.ts'
import type { UpstreamTransport, UpstreamWay, WireRequest } from '../../upstreams/provider.ts'
import {
  type Continuation,
  createFrame,
  type ProviderEvent,
  readProviderEvent,
  steerFrame,
} from './provider-frame.ts'
import { openProviderSocket, type ProviderSocket, type UpgradeRefusal } from './provider-socket.ts'
import type { TurnFacts } from './turn-facts.ts'

/** Statuses of an upgrade that mean the same as by HTTP: the key may not call, or not now. */
const MEANT_STATUSES: ReadonlySet<number> = new Set([401, 403, 429])
/** Codes of errors after which the same turn is sent over a new socket, with its whole conversation. */
const RENEWED_CODES: ReadonlySet<string> = new Set([
  'previous_response_not_found',
  'websocket_connection_limit_reached',
])
const STREAM_HEAD = { status: 200, contentType: 'text/event-stream', retryAfter: undefined, headers: {} }

/** The event of a provider that has taken a steer; the other two end it. */
const STEERED = 'response.steer.accepted'
/** The answer for the call of a turn that does not follow from the running one. Its client has got an event of the provider. */
const NOT_STEERED: UpgradeRefusal = {
  status: 400,
  contentType: 'application/json',
  retryAfter: undefined,
  body: Buffer.from('{"error":{"code":"steering_not_supported","message":"the response cannot be steered"}}'),
}

/** What a lane reports, and the channels that it may use. */
interface LaneRegister {
  readonly channels: () => readonly Channel[]
  note(request: Request, turn: LaneTurn): void
  refused(channel: Channel): void
}

/** A turn of a lane, which is sent over the lane's socket. */
export class LaneTurn implements UpstreamTransport {
  readonly facts: TurnFacts
  readonly #lane: ProviderLane
  /** The provider's id of the answer; undefined if it cannot be continued over the socket. */
  providerId: string | undefined

  constructor(lane: ProviderLane, facts: TurnFacts) {
    this.#lane = lane
    this.facts = facts
  }

  send(request: WireRequest, way: UpstreamWay, listener: UpstreamResponseListener): UpstreamRequest {
    return this.#lane.send(this, request, way, listener)
  }

  /** Whether the answer of the turn is arriving over the lane's socket, so that it can be steered. */
  get isSteerable(): boolean {
    return this.#lane.current?.isOf(this) === true
  }

  /** Whether the lane's socket is one of this channel, and of this key if there is one. */
  runsOver(channel: Channel, key?: UpstreamKey): boolean {
    return this.#lane.runsOver(channel, key)
  }

  /** Notes under which id the client knows the answer; undefined if the turn failed. */
  answered(shownId: string | undefined): void {
    if (this.providerId !== undefined) this.#lane.answered(this.providerId, shownId)
  }
}

/** The socket of one lane to a provider: `docs/websocket.md: Sockets of providers`. */
export class ProviderLane {
  readonly #sockets: LaneRegister
  readonly #newMemory: () => ResponseMemory
  #socket: ProviderSocket | undefined
  readonly #running = new Set<SocketExchange>()
  /** The exchange whose answer is arriving over the socket. */
  current: SocketExchange | undefined
  /** The channels among which the socket's was looked for. */
  #known: readonly Channel[] | undefined
  #isClosed = false

  /** `newMemory` makes that of a socket. */
  constructor(sockets: LaneRegister, newMemory: () => ResponseMemory) {
    this.#sockets = sockets
    this.#newMemory = newMemory
  }

  /** Adds a turn. `request`: the one that stands for it. */
  turn(request: Request, facts: TurnFacts): LaneTurn {
    const turn = new LaneTurn(this, facts)
    this.#sockets.note(request, turn)
    return turn
  }

  /** Notes under which id the client knows the provider's last answer; undefined if it cannot be continued. */
  answered(id: string, shownId: string | undefined): void {
    if (this.#socket?.last?.id === id) this.#socket.last = shownId === undefined ? undefined : { id, shownId }
  }

  /** Closes the socket if no turn needs it and its channel is not configured like that any more. Called once a second. */
  tick(): void {
    const channels = this.#sockets.channels()
    if (channels === this.#known || this.#running.size > 0) return
    this.#known = channels
    if (!channels.some((channel) => this.runsOver(channel, undefined))) this.drop()
  }

  /** Closes the socket, once the turn is over whose answer may still be read to its end. */
  close(): void {
    this.#isClosed = true
    if (this.#running.size === 0) this.drop()
  }

  send(
    turn: LaneTurn,
    request: WireRequest,
    way: UpstreamWay,
    listener: UpstreamResponseListener,
  ): UpstreamRequest {
    const exchange = new SocketExchange(this, turn, request, way, listener)
    this.#running.add(exchange)
    return exchange
  }

  runsOver(channel: Channel, key: UpstreamKey | undefined): boolean {
    return this.#socket?.isOf(channel, key) === true
  }

  /** The open socket, if it serves the channel and the key. Closes it otherwise: the lane has moved. */
  socketFor(way: UpstreamWay): ProviderSocket | undefined {
    const socket = this.#socket
    // What an earlier turn has left unread would be taken for the answer to this one.
    if (socket?.serves(way) && !this.current) return socket
    this.drop()
    return undefined
  }

  /** How the turn goes on from the last answer on the socket; undefined if its conversation is sent whole. */
  continuation(socket: ProviderSocket, { previousId, items }: TurnFacts): Continuation | undefined {
    if (previousId === undefined || socket.last?.shownId !== previousId) return undefined
    return { after: socket.last.id, items }
  }

  /** Opens a socket for a request. Resolves to undefined if the request is to be sent by HTTP. */
  async open(way: UpstreamWay): Promise<Opened | undefined> {
    const upgraded = await openProviderSocket(way, this.#newMemory())
    if ('unreachable' in upgraded || 'socket' in upgraded) return upgraded
    const { refusal } = upgraded
    if (refusal && MEANT_STATUSES.has(refusal.status)) return { refusal }
    this.#sockets.refused(way.channel)
    return undefined
  }

  /** Makes a new socket that of the lane. */
  adopt(socket: ProviderSocket): void {
    this.drop()
    this.#socket = socket
    this.#known = undefined
  }

  drop(): void {
    this.#socket?.close()
    this.#socket = undefined
  }

  /** Notes that the turn needs the socket no more. */
  over(exchange: SocketExchange): void {
    this.#running.delete(exchange)
    if (this.current === exchange) this.current = undefined
    if (this.#isClosed && this.#running.size === 0) this.drop()
  }
}

type Opened =
  | { readonly socket: ProviderSocket; readonly connectMs: number }
  | { readonly refusal: UpgradeRefusal }
  | { readonly unreachable: string }

/** One turn over a provider's socket, whose events are read like those of a stream by HTTP. */
class SocketExchange implements UpstreamRequest {
  readonly #lane: ProviderLane
  readonly #turn: LaneTurn
  readonly #request: WireRequest
  readonly #way: UpstreamWay
  readonly #listener: UpstreamResponseListener
  #socket: ProviderSocket | undefined
  #byHttp: UpstreamRequest | undefined
  #timer: NodeJS.Timeout | undefined
  #wasSent = false
  #connectMs = 0
  #hasBegun = false
  #isRenewed = false
  #isPaused = false
  isShort = false
  #isOver = false
  /** The provider's id of the answer that is arriving. */
  #startedId: string | undefined
  /** Whether the answer begins only after another one that is still arriving over the socket. */
  #isWaiting = false
  /** The exchange that gets the answer that follows from this one, because it was steered. */
  #successor: SocketExchange | undefined
  /** The turns whose steers of this answer, or of the one before, the provider has not answered; the oldest first. */
  #openSteers: SocketExchange[] = []
  /** Whether the provider has taken one of these steers. */
  #isSteered = false
  /** The provider's id of the answer that this turn steers. */
  #steeredId = ''

  constructor(
    lane: ProviderLane,
    turn: LaneTurn,
    request: WireRequest,
    way: UpstreamWay,
    listener: UpstreamResponseListener,
  ) {
    this.#lane = lane
    this.#turn = turn
    this.#request = request
    this.#way = way
    this.#listener = listener
    // The request begins later, because the caller must have this object before its listener is called.
    queueMicrotask(() =>
      this.#guarded(() => (turn.facts.steering ? this.#steer() : this.#begin(lane.socketFor(way)))),
    )
  }

  get isSent(): boolean {
    return this.#wasSent || this.#byHttp?.isSent === true
  }

  get connectDurationMs(): number {
    return this.#byHttp?.connectDurationMs ?? this.#connectMs
  }

  /** Whether the answer of a turn is arriving over the socket. */
  isOf(turn: LaneTurn): boolean {
    return this.#turn === turn && this.#startedId !== undefined
  }

  pause(): void {
    this.#byHttp?.pause()
    // The socket has the answer of another turn then.
    if (this.#isOver) return
    this.#isPaused = true
    if (!this.#isWaiting) this.#socket?.pause()
    clearTimeout(this.#timer)
  }

  resume(): void {
    this.#isPaused = false
    this.#byHttp?.resume()
    if (this.#isWaiting || this.#isOver) return
    this.#socket?.resume()
    if (this.#socket) this.#expectNext()
  }

  cancel(): void {
    this.#byHttp?.cancel()
    // What the provider still sends belongs to this turn, so that the socket can carry no other.
    if (!this.#isOver) this.#end(true)
  }

  onMessage(message: Buffer): void {
    if (this.#isOver) return
    const event = readProviderEvent(message)
    if (!event) return this.#fail('an unreadable event')
    if (event.type.startsWith('response.steer.')) return this.#onSteerEvent(event)
    if (!this.#hasBegun && event.refusal) return this.#refuse(event.refusal)
    if (!this.#hasBegun) this.#begun()
    this.#startedId ??= event.startedId
    this.#expectNext()
    this.#deliver(event)
  }

  onShort(isShort: boolean): void {
    this.isShort = isShort
    this.#expectNext()
  }

  onBreak(cause: string): void {
    if (this.#isOver) return
    if (this.#hasBegun || this.#isRenewed || this.isShort || this.#turn.facts.steering)
      return this.#fail(cause)
    this.#renew()
  }

  #begun(): void {
    this.#hasBegun = true
    this.#openSteers = []
    this.#isSteered = false
    this.#listener.onHead(STREAM_HEAD)
  }

  #begin(socket: ProviderSocket | undefined): void {
    if (this.#isOver) return
    if (socket) return this.#send(socket)
    this.#lane.open(this.#way).then(
      (opened) => this.#guarded(() => this.#onOpened(opened)),
      (error: unknown) => this.#fail((error as Error).message),
    )
  }

  #onOpened(opened: Opened | undefined): void {
    if (this.#isOver) return opened && 'socket' in opened ? opened.socket.close() : undefined
    if (!opened) return this.#sendByHttp()
    if ('unreachable' in opened) return this.#fail(opened.unreachable)
    if ('refusal' in opened) return this.#answer(opened.refusal)
    this.#connectMs = opened.connectMs
    this.#lane.adopt(opened.socket)
    this.#send(opened.socket)
  }

  #send(socket: ProviderSocket): void {
    const { facts } = this.#turn
    this.#way.requireHold()
    const continued = this.#lane.continuation(socket, facts)
    const frame = createFrame(this.#request.body as Buffer, facts, continued)
    this.#request.onBody?.(frame)
    this.#socket = socket
    socket.last = undefined
    this.#wasSent = true
    this.#lane.current = this
    socket.listen(this)
    if (this.#isPaused) socket.pause()
    this.#expectNext()
    socket.send(frame)
  }

  /** Steers the answer that is arriving, from which that of this turn follows. */
  #steer(): void {
    if (this.#isOver) return
    const { current } = this.#lane
    const socket = current?.takeSuccessor(this)
    if (!current || !socket) return this.#answer(NOT_STEERED)
    const { facts } = this.#turn
    const frame = steerFrame(this.#request.body as Buffer, facts.items, current.#startedId as string)
    this.#request.onBody?.(frame)
    this.#socket = socket
    this.#isWaiting = true
    this.#steeredId = current.#startedId as string
    socket.send(frame)
  }

  /** Takes the exchange that follows from this one, in place of an earlier one. Returns the socket; undefined if it cannot be steered. */
  takeSuccessor(successor: SocketExchange): ProviderSocket | undefined {
    const socket = this.#socket
    if (this.#isOver || this.#startedId === undefined || !socket?.serves(successor.#way)) return undefined
    successor.#way.requireHold()
    if (this.#successor) this.#successor.#replace()
    this.#successor = successor
    this.#openSteers.push(successor)
    return socket
  }

  #replace(): void {
    this.#turn.facts.steering?.onReplaced()
    this.#answer(NOT_STEERED)
  }

  /** Handles what the provider says of the oldest steer that it has not answered. Without one that it has taken, nothing follows. */
  #onSteerEvent(event: ProviderEvent): void {
    const steer = this.#openSteers.shift()
    if (!steer) return
    if (event.type === STEERED) this.#isSteered = true
    steer.#turn.facts.steering?.onEvent(event, steer.#steeredId)
    if (this.#isSteered || this.#openSteers.length > 0) return
    const successor = this.#successor ?? this
    this.#successor = undefined
    successor.#answer(NOT_STEERED)
  }

  /** Sends the turn as before sockets; one that generates nothing needs no provider then. */
  #sendByHttp(): void {
    const { generates, prepared } = this.#turn.facts
    if (generates) {
      this.#lane.over(this)
      this.#byHttp = this.#way.sendByHttp(this.#listener)
      if (this.#isPaused) this.#byHttp.pause()
      return
    }
    this.#listener.onHead(STREAM_HEAD)
    for (const json of prepared()) this.#listener.onData(Buffer.from(`data: ${json}\n\n`))
    this.#end()
    this.#listener.onEnd()
  }

  /** Sends the turn once more over a new socket, with its whole conversation. */
  #renew(): void {
    this.#isRenewed = true
    this.#socket?.listen(undefined)
    this.#socket = undefined
    clearTimeout(this.#timer)
    this.#lane.drop()
    this.#begin(undefined)
  }

  #refuse({ code, ...refusal }: NonNullable<ProviderEvent['refusal']>): void {
    if (RENEWED_CODES.has(code) && !this.#isRenewed) return this.#renew()
    this.#answer({ ...refusal, contentType: 'application/json' })
  }

  /** Passes an answer on that is no stream. */
  #answer({ status, contentType, retryAfter, body }: UpgradeRefusal): void {
    if (this.#isOver) return
    this.#end()
    this.#listener.onHead({ status, contentType, retryAfter, headers: {} })
    this.#listener.onData(body)
    this.#listener.onEnd()
  }

  #deliver({ bytes, end }: ProviderEvent): void {
    if (end && this.#socket) this.#note(this.#socket, end.id)
    if (end) this.#end()
    this.#listener.onData(bytes)
    if (end) this.#listener.onEnd()
  }

  #note(socket: ProviderSocket, id: string | undefined): void {
    this.#turn.providerId = id
    socket.last = id === undefined ? undefined : { id, shownId: undefined }
  }

  #fail(cause: string): void {
    if (this.#isOver) return
    this.#end(true)
    this.#listener.onError(new TransportError(cause, false))
  }

  /** `isLost`: the socket can carry no other turn. */
  #end(isLost = false): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#lane.over(this)
    const [socket, successor] = [this.#socket, this.#successor]
    if (this.#isWaiting || !socket) return
    if (isLost || !successor || successor.#isOver) {
      socket.listen(undefined)
      // Otherwise the provider would answer a turn that was stopped before it began.
      if (isLost || successor) this.#lane.drop()
      if (successor) successor.#answer(NOT_STEERED)
      return
    }
    socket.listen(successor)
    successor.#follow(this.#openSteers, this.#isSteered)
  }

  /** Expects the answer of this turn next, because the one before is over. */
  #follow(openSteers: SocketExchange[], isSteered: boolean): void {
    this.#isWaiting = false
    this.#wasSent = true
    this.#openSteers = openSteers
    this.#isSteered = isSteered
    this.#lane.current = this
    if (this.#isPaused) this.#socket?.pause()
    this.#expectNext()
  }

  /** Nothing catches what is thrown in a later turn of the event loop, such as that the call was settled meanwhile. */
  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#fail((error as Error).message)
    }
  }

  /** Begins the time-out for the next event, unless nothing is being read. */
  #expectNext(): void {
    clearTimeout(this.#timer)
    if (this.#isPaused || this.isShort) return
    const { idle, first_byte: firstByte } = this.#way.channel.timeouts
    const [ms, cause] = this.#hasBegun ? [idle, 'idle time-out'] : [firstByte, 'first byte time-out']
    this.#timer = setTimeout(() => this.#fail(cause), ms).unref()
  }
}
