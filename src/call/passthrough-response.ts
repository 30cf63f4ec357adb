import type { StreamError } from '@sluice/wire/sse/stream-tap'
import { WireError } from '@sluice/wire/wire-error'
import { asGatewayError } from '../errors.ts'
import { isMediaType } from '../upstreams/media-type.ts'
import type { Call } from './call.ts'
import type { Passthrough, PassthroughOutput, PassthroughResponses } from './dialects/passthrough.ts'
import {
  failureInAnswer,
  type Failure,
  failureWithoutResponse,
  failureOfWrite,
  UNREADABLE_STREAM,
} from './failure.ts'
import type { ResponseEnding } from './dialects/answer-reader.ts'
import type { CheckTurns } from './check-turns.ts'
import { ReadPauses } from './read-pauses.ts'
import { ResponseHandler } from './response-handler.ts'
import type { UpstreamFlow } from './upstream-flow.ts'
import type { AttemptTarget } from './request-stages.ts'

/** Milliseconds for which data sent to a client may remain unread before the client is disconnected. */
const MAX_UNREAD_MS = 60_000
/**
 * Maximum bytes of a response that are held back until they are known to be a response of the endpoint and
 * not an error.
 */
const MAX_UNKNOWN_BYTES = 65_536
/** Maximum bytes of a response that are held back until it is checked. */
const MAX_HELD_BYTES = 64 * 1024 * 1024
const NO_BYTES = Buffer.alloc(0)
/** Marks the end of the upstream's response in the queue of chunks. */
const END = Symbol('end')

/**
 * Handles images and audio. Bytes are sent to the client as they arrive, so that little memory is needed.
 * Only the last bytes wait until the charge is durable.
 */
export class PassthroughResponse extends ResponseHandler {
  readonly #responses: PassthroughResponses
  readonly #pauses: ReadPauses
  #passthrough: Passthrough | undefined
  /** What has arrived of a stream that is checked in turns; the last entry says how the response ended. */
  readonly #unread: (Buffer | typeof END | Failure)[] = []
  /** Pieces of the response for the next write to the client. */
  readonly #outgoing: Buffer[] = []
  #outgoingBytes = 0
  #clientPausedAt = 0
  /**
   * Cancels the check of the response. Set during this check, when the response has
   * arrived completely.
   */
  #checking: AbortController | undefined

  constructor(call: Call, target: AttemptTarget, upstream: UpstreamFlow, responses: PassthroughResponses) {
    super(call, target, upstream)
    this.#responses = responses
    this.#pauses = new ReadPauses(upstream)
  }

  override get hasContent(): boolean {
    return this.#passthrough?.hasContent === true
  }

  override accepts(contentType: string): boolean {
    const passthrough = this.#responses.begin(contentType)
    // The responses to further requests of the same call continue the first response.
    this.#passthrough ??= passthrough
    return passthrough !== undefined
  }

  override onSuccess(contentType: string): void {
    super.onSuccess(isMediaType(contentType) ? contentType : 'application/octet-stream')
  }

  onData(chunk: Buffer): void {
    const passthrough = this.#passthrough
    if (this.state === 'over' || this.#checking || !passthrough) return
    this.call.noteFirstByte()
    if (passthrough.checks) {
      this.#unread.push(chunk)
      return this.#readInTurns(passthrough, passthrough.checks)
    }
    const beganMs = performance.now()
    this.#read(passthrough, chunk)
    this.#pauses.noteWork(performance.now() - beganMs)
  }

  #readInTurns(passthrough: Passthrough, checks: CheckTurns): void {
    while (this.state !== 'over' && !this.#pauses.has('turn')) {
      const next = this.#unread.shift()
      if (next === undefined) return
      if (next === END) return this.#end()
      if (!Buffer.isBuffer(next)) return this.#fail(next)
      const beganMs = performance.now()
      const { length } = checks
      if (next.length > length) this.#unread.unshift(next.subarray(length))
      if (this.#read(passthrough, next.subarray(0, length))) this.#unread.unshift(NO_BYTES)
      const turn = checks.note(performance.now() - beganMs)
      if (!turn) continue
      this.#pauses.begin('turn')
      turn
        .then(() => {
          this.#pauses.end('turn')
          this.#readInTurns(passthrough, checks)
        })
        .catch((error: unknown) => this.crash(error))
    }
  }

  /** Reads a chunk. Returns whether a part of it is left. */
  #read(passthrough: Passthrough, chunk: Buffer): boolean {
    let output: PassthroughOutput
    try {
      output = passthrough.push(chunk)
    } catch (error) {
      this.upstream.cancel()
      this.#refuseUnreadable(error, 'cut')
      return false
    }
    this.#take(passthrough, output.forward, output.isOver)
    return output.isUnfinished === true
  }

  // An event that is too large to be checked is not sent. It was generated, so it is charged, and no other upstream is tried.
  #refuseUnreadable(error: unknown, ending: 'complete' | 'cut'): void {
    if (!(error instanceof WireError)) return this.crash(error)
    this.#endUndelivered({ ...UNREADABLE_STREAM, refusal: asGatewayError(error) }, ending)
  }

  // Ends a response that the provider must be paid for: it is charged, and no other provider is asked.
  #endUndelivered(reason: Omit<Failure, 'kind'>, ending: 'complete' | 'cut'): void {
    const failure = { ...reason, kind: 'undeliverable' } as const
    const isComplete = ending === 'complete'
    if (this.#mayGoElsewhere) {
      this.close()
      return this.refusedAfter(this.#charge(ending, isComplete, false), failure)
    }
    const last = this.interrupted(failure, this.#passthrough?.tap)
    this.#finish(ending, isComplete, () => last)
  }

  #take(passthrough: Passthrough, forward: Buffer | undefined, isOver: boolean): void {
    if (forward) this.#forward(forward)
    if (passthrough.error && this.#mayGoElsewhere) {
      this.upstream.cancel()
      return this.#fail(this.#failureOf(passthrough, passthrough.error))
    }
    if (passthrough.isBlocked) return this.#refuse(isOver)
    if (isOver) return this.#end()
    if (passthrough.held !== undefined) this.#hold(passthrough.held)
    if (passthrough.hasBegun) this.#sendWhenDurable()
    else if (this.#outgoingBytes > MAX_UNKNOWN_BYTES) {
      this.upstream.cancel()
      this.#fail(failureWithoutResponse('no answer of its protocol'))
    }
  }

  // Ends a response that a check has blocked: what has arrived is charged, and only its final bytes are sent.
  #refuse(isComplete: boolean): void {
    if (!isComplete) this.upstream.cancel()
    const ending = this.#isDraining ? 'client_gone' : isComplete ? 'complete' : 'cut'
    this.#finish(ending, isComplete, () => this.#passthrough?.rest())
  }

  #hold(bytes: number): void {
    this.memory.resize(bytes)
    if (bytes > MAX_HELD_BYTES) {
      this.upstream.cancel()
      return this.#fail(failureWithoutResponse('answer too large'))
    }
    if (!this.memory.isShort || this.#pauses.has('memory')) return
    this.#pauses.begin('memory')
    void this.memory.whenEnough().then(() => this.#pauses.end('memory'))
  }

  onEnd(): void {
    if (this.#unread.length > 0) this.#unread.push(END)
    else this.#end()
  }

  #end(): void {
    const passthrough = this.#passthrough
    // Nothing is left to do if the stream's events have ended the response before its connection ended.
    if (this.state === 'over' || this.#checking || !passthrough) return
    const isComplete = passthrough.end()
    const { error } = passthrough
    if (error && this.#mayGoElsewhere) return this.#fail(this.#failureOf(passthrough, error))
    if (!isComplete && !error)
      return this.#fail(
        failureWithoutResponse(this.state === 'waiting' ? 'no answer of its protocol' : 'stream ended early'),
      )
    const next = isComplete && !this.#isDraining ? passthrough.next?.() : undefined
    if (next) {
      this.upstream.goOn(next)
      // The next request is paused if there are still reasons to pause.
      return this.#pauses.apply()
    }
    if (isComplete && !error && !this.#isDraining && passthrough.check)
      return this.#check((signal) => passthrough.check?.(signal))
    if (error) {
      const last = this.endedByError(error, passthrough.tap, passthrough.hasContent)
      this.#finish(this.#isDraining ? 'client_gone' : 'cut', false, () => last)
    } else this.#finish(this.#isDraining ? 'client_gone' : 'complete', true, () => passthrough.rest())
  }

  // Has the response checked. Meanwhile, the client may leave and the call may be stopped.
  #check(check: (signal: AbortSignal) => Promise<void> | undefined): void {
    const stop = new AbortController()
    this.#checking = stop
    this.#pauses.discardRest()
    Promise.resolve(check(stop.signal)).then(
      () => {
        if (this.state === 'over' || stop.signal.aborted) return
        this.#finish('complete', true, () => this.#passthrough?.rest())
      },
      (error: unknown) => {
        if (!stop.signal.aborted) this.#refuseUnreadable(error, 'complete')
      },
    )
  }

  onFailure(failure: Failure): void {
    if (this.#unread.length > 0) this.#unread.push(failure)
    else this.#fail(failure)
  }

  #fail(failure: Failure): void {
    if (this.state === 'over') return
    if (this.#checking) {
      // The response is complete, however its connection ends.
      if (failure.kind === 'no_answer') return
      this.#checking.abort()
      return this.#endUndelivered(failure, 'complete')
    }
    if (this.#mayGoElsewhere) {
      const own = this.ownFailure(failure)
      this.close()
      if (failure.isCharged) this.refusedAfter(this.#charge('stopped', false, false), failure)
      else if (own) this.refusedAfter(this.#charge('cut', false, false), own)
      else this.undelivered(failure)
      return
    }
    const last = this.interrupted(failure, this.#passthrough?.tap)
    const ending = failure.isCharged ? 'stopped' : 'cut'
    this.#finish(this.#isDraining ? 'client_gone' : ending, false, () => last)
  }

  override onTick(nowMs: number): void {
    if (this.#pauses.has('client') && nowMs - this.#clientPausedAt > MAX_UNREAD_MS)
      this.call.response.destroyUnread()
  }

  protected override get wasPausedLong(): boolean {
    return this.#pauses.areLong
  }

  protected override onDraining(): void {
    this.#outgoing.length = 0
    this.#passthrough?.clientLeft?.()
    this.#pauses.end('client')
    if (this.#checking) this.settleWithoutClient()
  }

  protected settleWithoutClient(): void {
    this.#checking?.abort()
    this.#finish('client_gone', this.#checking !== undefined, () => undefined)
  }

  get #isDraining(): boolean {
    return this.state === 'draining'
  }

  #failureOf({ tap }: Passthrough, error: StreamError): Failure {
    return failureInAnswer(this.target, error, tap ? 'error in the first event' : 'error with status 200')
  }

  // Whether nothing was sent to a client that is still connected, so that another channel can be tried.
  get #mayGoElsewhere(): boolean {
    return this.state === 'waiting'
  }

  #forward(bytes: Buffer): void {
    if (this.#isDraining) return
    this.#outgoing.push(bytes)
    this.#outgoingBytes += bytes.length
    this.call.services.memory.pass(bytes.length)
  }

  // `docs/ledger.md: Durability before delivery`: nothing is sent before the hold (reserved quota) is
  // durable.
  #sendWhenDurable(): void {
    const { hold } = this.call
    if (hold.isDurable) return this.#send()
    if (this.#pauses.has('hold')) return
    this.#pauses.begin('hold')
    hold
      .whenDurable()
      .then((isDurable) => {
        this.#pauses.remove('hold')
        if (this.state === 'over') return
        if (isDurable) {
          this.#send()
          return this.#pauses.apply()
        }
        this.upstream.cancel()
        this.onFailure(failureOfWrite(hold.writeFailure))
      })
      .catch((error: unknown) => this.crash(error))
  }

  #send(): void {
    const { response } = this.call
    if (this.#outgoing.length === 0 || response.isAborted || this.#isDraining) return
    const pieces = this.#outgoing.splice(0)
    this.#outgoingBytes = 0
    const bytes = pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces)
    this.#writeHead()
    if (response.write(bytes) || this.#pauses.has('client')) return
    this.#clientPausedAt = performance.now()
    this.#pauses.begin('client')
    response.whenDrained(() => this.#pauses.end('client'))
  }

  #writeHead(): void {
    const { response } = this.call
    if (this.state === 'waiting') this.state = 'open'
    if (!response.headersSent)
      response.writeHead(200, {
        ...this.call.headers(this.contentType, this.target),
        'x-accel-buffering': 'no',
      })
  }

  #finish(ending: ResponseEnding, isComplete: boolean, last: () => Buffer | undefined): void {
    this.close()
    this.#pauses.discardRest()
    const left = { take: () => Buffer.concat(this.#outgoing.splice(0)) }
    this.continueUnlessSettled(this.#settleAndEnd(ending, isComplete, last), this.#passthrough?.tap, left)
  }

  async #charge(ending: ResponseEnding, isComplete: boolean, delivered: boolean): Promise<void> {
    const measure = await (this.#passthrough?.measure(this.call, isComplete, ending, this.upstream.isSent) ??
      this.#responses.measureUnanswered(this.call))
    await this.call.settlement.settleMeasured(this.target, ending, measure, delivered)
  }

  async #settleAndEnd(
    ending: ResponseEnding,
    isComplete: boolean,
    last: () => Buffer | undefined,
  ): Promise<void> {
    const { response } = this.call
    if (ending === 'cut' && !this.hasContent) this.call.settlement.settleUndelivered(this.target)
    else await this.#charge(ending, isComplete, ending !== 'client_gone' || response.headersSent)
    if (ending === 'client_gone' || response.isAborted) return
    const bytes = last()
    // An error cannot be sent in the middle of an image, so the connection is closed.
    if (bytes === undefined) return response.destroy()
    this.countLast(bytes)
    this.#writeHead()
    response.end(Buffer.concat([...this.#outgoing.splice(0), bytes]))
  }
}
