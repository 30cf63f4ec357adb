import type { UpgradedConnection } from '@sluice/http1'
import { WebSocket } from 'ws'
import { GatewayError } from '../../errors.ts'
import { composedRequest } from '../../call/composed-request.ts'
import { newResponseId } from '../../call/response-id.ts'
import { ArrivingMessage } from './arriving-message.ts'
import type { ConversationState } from './conversations.ts'
import { Lifetimes } from './lifetimes.ts'
import type { ProviderEvent } from './provider-frame.ts'
import type { LaneTurn, ProviderLane } from './provider-lane.ts'
import type { SocketServices, SocketTimes, Upgrade } from './socket-services.ts'
import {
  failureOfRefusal,
  readSteer,
  SteerFailure,
  steerFailedEvent,
  type SteerFrame,
  successorFrame,
} from './steering.ts'
import {
  AnswerCollector,
  bodyAfter,
  CHECKED,
  endOfKey,
  eventLines,
  needsPlaceholder,
  preparedEvents,
  refusalEvent,
  stateOf,
  withItems,
  withLane,
} from './turn.ts'
import { type Frame, frameType, readFrame, readTurnFrame, type TurnFrame } from './turn-frame.ts'
import { EventResponse } from '../../call/answers/event-response.ts'

/** Maximum number of lanes with a name during the life of a socket. */
const MAX_LANES = 32
const MAX_RUNNING = 16
const MAX_WAITING = 64
/** Maximum number of steers of one response that are open at the same time. */
const MAX_STEERS = 16
/** Bytes that a client may leave unread before neither its providers nor its messages are read any further. */
const MAX_UNREAD_BYTES = 1_048_576

/** Status codes of RFC 6455, section 7.4.1, and of its registry. */
export const CLOSE = { normal: 1000, unsupported: 1003, policy: 1008, restart: 1012, tryLater: 1013 } as const

interface WaitingTurn {
  readonly frame: TurnFrame
  readonly number: number
  readonly bytes: number
}

interface Lane {
  readonly name: string | undefined
  readonly waiting: WaitingTurn[]
  readonly provider: ProviderLane
  running: RunningTurn | undefined
  /** Number of turns whose work is not done. The next one would count beside them as a parallel call. */
  unfinished: number
  /** Turns that follow from the running one because it was steered, the oldest first. */
  following: RunningTurn[]
}

interface RunningTurn {
  readonly response: EventResponse
  readonly frame: TurnFrame
  /** The answer that the turn goes on from. */
  readonly base: ConversationState | undefined
  readonly collector: AnswerCollector
  readonly told: LaneTurn
  /** Items of steers that the provider keeps for the turn after this one. */
  readonly pending: string[]
  /** The steers of this turn. */
  readonly steers: SteerFrame[]
  /** The state after the turn, once it is over. */
  after: ConversationState | undefined
  /** Set if the turn was refused because the key is no longer valid. */
  keyEnd?: GatewayError | undefined
  /** What is sent of a turn that follows from one that is not over, once that is over. */
  readonly early: (() => void)[]
}

/** A steer of a running turn. */
interface SteeredTurn {
  readonly before: RunningTurn
  readonly steer: SteerFrame
}

/** A WebSocket of a client, whose messages are turns: `docs/websocket.md`. */
export class ClientSocket {
  /** Index in the set of sockets; only the set changes it. */
  index = -1
  readonly #socket: WebSocket
  readonly #connection: UpgradedConnection
  readonly #upgrade: Upgrade
  readonly #services: SocketServices
  readonly #arriving: ArrivingMessage
  readonly #lanes = new Map<string | undefined, Lane>()
  #turns = 0
  #running = 0
  #waiting = 0
  /** How the socket ends once no turn is running; undefined if it goes on. */
  #ending: { readonly code: number; readonly error: GatewayError } | undefined
  /** The code that the gateway closes the socket with. */
  #closeCode: number | undefined
  #isClosed = false
  readonly #lifetimes: Lifetimes

  constructor(
    socket: WebSocket,
    connection: UpgradedConnection,
    upgrade: Upgrade,
    times: SocketTimes,
    services: SocketServices,
  ) {
    this.#socket = socket
    this.#connection = connection
    this.#upgrade = upgrade
    this.#services = services
    this.#arriving = new ArrivingMessage(services.arrival, ({ code, message }) =>
      this.#close(code === 'request_timeout' ? CLOSE.policy : CLOSE.tryLater, message),
    )
    this.#lifetimes = new Lifetimes(times, services.nowMs())
    socket.on('message', (data: Buffer, isBinary: boolean) => this.#receive(data, isBinary))
    socket.on('close', (code: number) => this.#closed(code))
    // The event 'close' follows.
    socket.on('error', () => {})
    connection.inspect = (bytes) => this.#inspect(bytes)
    connection.onDisplaced = () => this.#close(CLOSE.tryLater)
    connection.on('drain', () => {
      this.#resume()
      for (const { running } of this.#lanes.values()) running?.response.onDrain()
    })
    connection.isIdle = true
  }

  /** Ends the socket because the gateway stops: at once if no turn is running. */
  drain(): void {
    this.#end(
      CLOSE.restart,
      new GatewayError('overloaded', 'the gateway is stopping; try again', { retryAfter: 5 }),
    )
  }

  /** Looks at the lifetimes of the socket and of those of its providers; called once a second. */
  tick(nowMs: number): void {
    const lifetimes = this.#lifetimes
    for (const { provider } of this.#lanes.values()) provider.tick()
    // A client that reads nothing, either, is disconnected by its connection.
    if (!this.#socket.isPaused && lifetimes.isGone(nowMs)) {
      this.#socket.terminate()
      return
    }
    if (lifetimes.takePing(nowMs) && this.#socket.readyState === WebSocket.OPEN) this.#socket.ping()
    if (this.#ending) return
    const tooOld = lifetimes.tooOld(nowMs)
    if (tooOld) this.#end(CLOSE.normal, tooOld)
    else if (this.#running === 0 && lifetimes.isIdle(nowMs)) this.#close(CLOSE.normal)
  }

  /** Counts bytes of the client, before they are read. Returns false to discard them. */
  #inspect(bytes: Buffer): boolean {
    this.#lifetimes.heard(this.#services.nowMs())
    // Each message and each ping is answered, so that a client could fill the memory with answers.
    if (this.#socket.bufferedAmount > MAX_UNREAD_BYTES) this.#socket.pause()
    return this.#arriving.count(bytes, this.#closeCode !== undefined)
  }

  #resume(): void {
    if (!this.#socket.isPaused) return
    this.#lifetimes.heard(this.#services.nowMs())
    this.#socket.resume()
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (this.#closeCode !== undefined) return
    this.#lifetimes.used(this.#services.nowMs())
    if (isBinary) {
      this.#close(CLOSE.unsupported, 'messages are JSON texts')
      return
    }
    let frame: Frame | undefined
    try {
      frame = readFrame(data)
      this.#take(frame, data.length)
    } catch (error) {
      this.#refuse(error, this.#upgrade.id, frame?.lane)
    }
  }

  #take(frame: Frame, bytes: number): void {
    switch (frameType(frame)) {
      case 'response.processed':
        return
      case 'response.steer':
        this.#steer(frame)
        return
      case 'response.create': {
        const turn = readTurnFrame(frame)
        if (this.#ending) throw this.#ending.error
        if (this.#waiting >= MAX_WAITING)
          throw new GatewayError(
            'websocket_queue_full',
            `${MAX_WAITING} frames of this socket wait already`,
            {
              retryAfter: 1,
            },
          )
        const lane = this.#lanes.get(frame.lane) ?? this.#newLane(frame.lane)
        if (!this.#services.memory.take(bytes))
          throw new GatewayError('overloaded', 'too many requests are being read at the moment; try again', {
            retryAfter: 1,
          })
        this.#lanes.set(lane.name, lane)
        this.#turns += 1
        this.#waiting += 1
        lane.waiting.push({ frame: turn, number: this.#turns, bytes })
        this.#startWaiting()
      }
    }
  }

  #newLane(name: string | undefined): Lane {
    const named = this.#lanes.size - (this.#lanes.has(undefined) ? 1 : 0)
    if (name !== undefined && named >= MAX_LANES)
      throw new GatewayError(
        'websocket_stream_limit_reached',
        `a socket has at most ${MAX_LANES} stream ids; open another socket for more`,
      )
    const provider = this.#services.providerLane()
    return { name, waiting: [], provider, running: undefined, unfinished: 0, following: [] }
  }

  /** Starts the turns that may run now: the first one of each lane, in the order in which they came. */
  #startWaiting(): void {
    while (this.#running < MAX_RUNNING) {
      let next: Lane | undefined
      for (const lane of this.#lanes.values()) {
        const first = lane.running || lane.unfinished > 0 ? undefined : lane.waiting[0]
        if (first && first.number < (next?.waiting[0]?.number ?? Number.POSITIVE_INFINITY)) next = lane
      }
      const turn = next?.waiting.shift()
      if (!next || !turn) break
      this.#waiting -= 1
      this.#start(next, turn)
    }
    this.#connection.isIdle = this.#running === 0 && this.#waiting === 0
    if (this.#running === 0) this.#finish()
  }

  #start(lane: Lane, turn: WaitingTurn): void {
    const { previousId, generates } = turn.frame
    const base = previousId === undefined ? undefined : this.#services.conversations.find(previousId)
    this.#running += 1
    this.#serve(lane, turn, base, !generates)
  }

  #serve(
    lane: Lane,
    turn: WaitingTurn,
    base: ConversationState | undefined,
    isCheck: boolean,
    steered?: SteeredTurn,
  ): RunningTurn {
    const { serveTurn, memory, answerMemory } = this.#services
    const { frame, number } = turn
    const collector = new AnswerCollector(memory)
    const id = `${this.#upgrade.id}.${number}`
    let status = 200
    const sendInTurn = (json: string): boolean => {
      const isEarly = lane.running !== running
      const send = (): void => this.#send(withLane(json, lane.name))
      if (isEarly) running.early.push(send)
      else send()
      return !isEarly && this.#socket.bufferedAmount <= MAX_UNREAD_BYTES
    }
    const response = new EventResponse(answerMemory(), {
      event(json) {
        collector.add(json)
        return sendInTurn(json)
      },
      whole: (given, headers, body) => {
        status = given
        running.keyEnd = endOfKey(given, body)
        if (given === CHECKED.prepareHere) this.#prepared(lane, frame, base)
        else if (steered && (steered.steer.isReplaced || steered.steer.told !== 'taken'))
          this.#refuseSteer(steered, lane, body)
        else if (given !== CHECKED.prepareThere) sendInTurn(refusalEvent(given, headers, body, undefined))
      },
      ended: (sent) => {
        if (running.early.length > 0) running.early.push(() => this.#afterSending(sent))
        else this.#afterSending(sent)
      },
      broke: () => this.#refuse(new GatewayError('upstream_error', 'the response broke off'), id, lane.name),
    })
    response.onClosed(() => {
      if (status === CHECKED.prepareThere && !this.#isClosed)
        lane.running = this.#serve(lane, turn, base, false)
      else this.#over(lane, turn, running, steered)
    })
    const body = bodyAfter(frame, base)
    const { url, headers, remoteAddress } = this.#upgrade
    const shown = steered ? { ...headers, 'cache-control': 'no-store' } : headers
    const request = composedRequest(url, shown, body, { remoteAddress, bytesRead: 0 })
    const told = lane.provider.turn(request, {
      previousId: frame.previousId,
      items: steered ? steered.steer.items.length : frame.itemCount,
      generates: frame.generates,
      isEmpty: needsPlaceholder(frame, base),
      prepared: () => preparedEvents(newResponseId(), frame, Date.now()),
      ...(steered && {
        steering: {
          unfinishedTokens: steered.before.collector.unfinishedBytes,
          onEvent: (event, runningId) => this.#tellOfSteer(lane, steered, event, runningId),
          onReplaced: () => void (steered.steer.isReplaced = true),
        },
      }),
    })
    const running: RunningTurn = {
      response,
      frame,
      base,
      collector,
      told,
      pending: [],
      steers: [],
      after: undefined,
      early: [],
    }
    if (steered) lane.following.push(running)
    else lane.running = running
    lane.unfinished += 1
    const over = (): void => {
      lane.unfinished -= 1
      if (!this.#isClosed) this.#startWaiting()
    }
    const message = (steered ? steered.steer : frame).scan.bytes
    const form = { message, shown: (answer: Buffer) => eventLines(answer, lane.name) }
    serveTurn({ id, request, response, form, isCheck, over })
    return running
  }

  #over(lane: Lane, turn: WaitingTurn, running: RunningTurn, steered?: SteeredTurn): void {
    const { conversations, memory, nowMs } = this.#services
    const { told, collector, frame, base, pending } = running
    memory.give(turn.bytes)
    this.#running -= 1
    this.#lifetimes.used(nowMs())
    const wasFirst = lane.running === running
    if (wasFirst) lane.running = lane.following.shift()
    else lane.following = lane.following.filter((one) => one !== running)
    if (this.#isClosed) return
    const from = steered ? steered.before.after : base
    const state = steered && !from ? undefined : collector.stateAfter(frame, from, pending)
    collector.release()
    running.after = state
    told.answered(state?.id)
    if (state) conversations.remember(lane.name, state)
    if (running.keyEnd) this.#end(CLOSE.policy, running.keyEnd)
    const next = wasFirst ? lane.running : undefined
    for (const send of next?.early.splice(0) ?? []) send()
    next?.response.onDrain()
    this.#startWaiting()
  }

  /** Gives a running turn further input. The turn that follows is a separate call. Its hold is made first. */
  #steer(frame: Frame): void {
    const { memory } = this.#services
    if (this.#ending) throw this.#ending.error
    const lane = this.#laneAnswering(frame.scan.value('previous_response_id'))
    try {
      const steer = readSteer(frame)
      const before = lane?.running
      if (!lane || !before)
        throw new SteerFailure('response_not_found', 'no response with this id is running on this socket')
      if (!before.told.isSteerable)
        throw new SteerFailure(
          'steering_not_supported',
          'this response cannot be steered; send another response.create',
        )
      if (lane.following.length >= MAX_STEERS)
        throw new SteerFailure(
          'websocket_queue_full',
          `${MAX_STEERS} steers of this response are open already`,
        )
      // The turn that follows has the input of all steers.
      const others = before.steers.filter(({ told }) => told !== 'not taken')
      const followed = successorFrame(before.frame, [...others, steer])
      const bytes = steer.scan.bytes.length + before.frame.scan.bytes.length
      if (before.collector.isLost || !memory.take(bytes))
        throw new SteerFailure('overloaded', 'too many requests are being read; try again')
      this.#turns += 1
      this.#running += 1
      before.steers.push(steer)
      const base = before.collector.stateSoFar(before.frame, before.base)
      this.#serve(lane, { frame: followed, number: this.#turns, bytes }, base, false, { before, steer })
    } catch (error) {
      if (!(error instanceof SteerFailure)) throw error
      this.#send(withLane(steerFailedEvent(frame, error), frame.lane ?? lane?.name))
    }
  }

  #laneAnswering(id: unknown): Lane | undefined {
    if (typeof id !== 'string') return undefined
    return [...this.#lanes.values()].find(({ running }) => running?.collector.startedId === id)
  }

  /** Tells the client what the provider says of a steer, with the ids that the client knows. */
  #tellOfSteer(
    lane: Lane,
    { before, steer }: SteeredTurn,
    { type, json }: ProviderEvent,
    runningId: string,
  ): void {
    if (type === 'response.steer.pending') this.#addPending(lane, before, steer.items)
    const shown = json.replaceAll(JSON.stringify(runningId), JSON.stringify(steer.previousId))
    this.#send(withLane(shown, lane.name))
    steer.told = type === 'response.steer.accepted' ? 'taken' : 'not taken'
  }

  #addPending(lane: Lane, turn: RunningTurn, items: readonly string[]): void {
    turn.pending.push(...items)
    if (!turn.after) return
    turn.after = withItems(turn.after, items)
    this.#services.conversations.remember(lane.name, turn.after)
  }

  #refuseSteer({ steer }: SteeredTurn, lane: Lane, body: Buffer): void {
    if (steer.told !== undefined || steer.isReplaced) return
    steer.told = 'not taken'
    this.#send(withLane(steerFailedEvent(steer, failureOfRefusal(body)), lane.name))
  }

  /** Answers a frame that was only checked. */
  #prepared(lane: Lane, frame: TurnFrame, base: ConversationState | undefined): void {
    const id = newResponseId()
    this.#services.conversations.remember(lane.name, stateOf(id, frame, base))
    for (const event of preparedEvents(id, frame, Date.now())) this.#send(withLane(event, lane.name))
  }

  /** Calls `sent` once the connection has taken everything that was sent so far. */
  #afterSending(sent: () => void): void {
    if (this.#connection.writableLength === 0) sent()
    else this.#connection.write(Buffer.alloc(0), (error) => error ?? sent())
  }

  #refuse(error: unknown, id: string, lane: string | undefined): void {
    const { status, headers, body } = this.#services.renderError(error, id)
    this.#send(refusalEvent(status, headers, body, lane))
  }

  #send(json: string): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(json, { binary: false })
  }

  /** Ends the socket once no turn is running. Frames that wait or come get the error. */
  #end(code: number, error: GatewayError): void {
    if (this.#ending || this.#closeCode !== undefined) return
    this.#ending = { code, error }
    for (const lane of this.#lanes.values())
      for (const { number, bytes } of lane.waiting.splice(0)) {
        this.#waiting -= 1
        this.#services.memory.give(bytes)
        this.#refuse(error, `${this.#upgrade.id}.${number}`, lane.name)
      }
    if (this.#running === 0) this.#finish()
  }

  #finish(): void {
    if (!this.#ending || this.#closeCode !== undefined) return
    const { code, error } = this.#ending
    if (error.code === 'websocket_connection_limit_reached') this.#refuse(error, this.#upgrade.id, undefined)
    this.#close(code, error.message)
  }

  #close(code: number, reason?: string): void {
    if (this.#closeCode !== undefined) return
    this.#closeCode = code
    this.#socket.close(code, reason)
  }

  #closed(code: number): void {
    this.#isClosed = true
    this.#closeCode ??= code
    this.#arriving.end()
    for (const lane of this.#lanes.values()) {
      lane.waiting.length = 0
      for (const { response } of lane.following.splice(0)) response.onConnectionEnd('aborted')
      lane.running?.response.onConnectionEnd('aborted')
      lane.provider.close()
    }
    this.#services.memory.release()
    this.#services.conversations.close()
    this.#services.onClosed(this.#closeCode)
  }
}
