import type { ReportedUsage } from '@sluice/wire/reported-usage'
import type { StreamError } from '@sluice/wire/sse/stream-tap'
import { promptTokens } from '@sluice/wire/usage'
import { GatewayError } from '../errors.ts'
import type { ResponseMemory } from '../limits/request-memory.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'
import type { Call } from './call.ts'
import type { ResponseEnding, Tap } from './dialects/answer-reader.ts'
import {
  errorInStream,
  gatewayErrorFrame,
  INTERRUPTED_MESSAGE,
  interruptedStreamError,
  storageErrorFrame,
  UPSTREAM_INTERRUPTED,
  upstreamErrorFrame,
} from './error-frames.ts'
import {
  errorSentToClient,
  type Failure,
  failureInAnswer,
  streamErrorText,
  UNREADABLE_CAUSES,
} from './failure.ts'
import { ruleOf } from './failure-table.ts'
import type { ChargeBasis } from './price-usage.ts'
import type { AttemptTarget } from './request-stages.ts'
import { responseMemory } from './response-memory.ts'
import type { UpstreamFlow } from './upstream-flow.ts'

/** Outcome of an attempt: the call is settled, or nothing was delivered and another attempt is possible. */
export type AttemptEnd = Failure | 'settled'

/**
 * State of a response. waiting: nothing was sent; open: its head was sent; draining: the client has left, and
 * the rest of the response is read for the charge; over: nothing is left to do.
 */
type ResponseState = 'waiting' | 'open' | 'draining' | 'over'

/**
 * Failure of a response that cannot be delivered, because its client's share of memory stayed used up too
 * long.
 */
const NO_MEMORY: Failure = {
  kind: 'undeliverable',
  refusal: new GatewayError('overloaded', 'too many large answers are held for this client; try again', {
    retryAfter: 1,
  }),
  cause: 'no memory',
  failureCause: 'gateway',
  inStream: { type: 'gateway_error', code: 'overloaded' },
}

/** Failure of a response that ended while, or after, its client read it too slowly or its user's memory was short. */
const NOT_READ: Failure = {
  kind: 'client_left',
  refusal: new GatewayError('request_timeout', 'the response was read too slowly'),
  cause: 'not read',
  failureCause: 'gateway',
  inStream: { type: 'gateway_error', code: 'request_timeout' },
}

/** Cause of the end of a stream in which the upstream has reported an error. */
const IN_STREAM = 'error in the stream'

/** Handles an upstream's response for a client. Ends its attempt exactly once. */
export abstract class ResponseHandler {
  /** Resolves once with the outcome of the attempt. Rejects if the call could not be settled. */
  readonly end: Promise<AttemptEnd>
  protected readonly call: Call
  protected readonly target: AttemptTarget
  protected readonly upstream: UpstreamFlow
  /** Memory for parts of the response that are held back, until the client has received them. */
  protected readonly memory: ResponseMemory
  protected contentType = ''
  protected state: ResponseState = 'waiting'
  /**
   * Returns facts for the charge of what has arrived of an answer in another form, and drops it. Set while it is collected
   * (`AnswerInAnyForm`).
   */
  collected: ((ending: ResponseEnding) => ChargeBasis | undefined) | undefined
  readonly #resolve: (end: AttemptEnd) => void
  readonly #reject: (error: unknown) => void
  #finishedAt = 0

  constructor(call: Call, target: AttemptTarget, upstream: UpstreamFlow) {
    this.call = call
    this.target = target
    this.upstream = upstream
    this.memory = responseMemory(call)
    const { promise, resolve, reject } = Promise.withResolvers<AttemptEnd>()
    this.end = promise
    this.#resolve = resolve
    this.#reject = reject
  }

  /** When the attempt ended, in milliseconds of `performance.now()`; 0 before. */
  get finishedAt(): number {
    return this.#finishedAt
  }

  /** Output tokens and cost so far, by the gateway's own count; only streams are counted. */
  get progress(): { readonly tokens: number; readonly cost: number } {
    return { tokens: 0, cost: 0 }
  }

  /** Whether content of the answer has arrived; of whole answers that is known at their end. */
  get hasContent(): boolean {
    return false
  }

  /** Whether a response with this content type was requested. */
  accepts(contentType: string): boolean {
    const isEvents = /^text\/event-stream\b/i.test(contentType)
    return isEvents === this.call.plan.request.stream && !/^text\/html\b/i.test(contentType)
  }

  /** Handles a successful response head; the content type may be sent to the client. */
  onSuccess(contentType: string): void {
    this.contentType = contentType
  }

  abstract onData(chunk: Buffer): void

  /** States how many bytes of the response are held back. Nothing more is read while there is too little memory for them. */
  holdBack(bytes: number): void {
    this.memory.resize(bytes)
    if (!this.memory.isShort) return
    this.upstream.pause()
    void this.memory.whenEnough().then(() => {
      if (this.state !== 'over') this.upstream.resume()
    })
  }

  /** Handles the end of an upstream response that has arrived completely. */
  abstract onEnd(): void

  /** Handles a failure, after which nothing usable will arrive. */
  abstract onFailure(failure: Failure): void

  /**
   * Called once a second, for time limits and keep-alive events; `_nowMs` is in milliseconds of
   * `performance.now()`.
   */
  onTick(_nowMs: number): void {}

  /**
   * Handles the disconnect of the client. `isReached`: the upstream may already be working on the request.
   */
  onClientLeft(isReached: boolean): void {
    if (this.state === 'over' || this.state === 'draining') return
    const { services, hold } = this.call
    const mayDrain = isReached && this.target.channel.on_client_gone === 'drain'
    if (mayDrain && services.drains.take(hold.account.user.id, 1)) {
      this.state = 'draining'
      this.onDraining()
      return
    }
    this.upstream.cancel()
    if (isReached) {
      this.settleWithoutClient()
      return
    }
    this.close()
    this.call.settlement.settleUndelivered(this.target)
    this.settled(Promise.resolve())
  }

  /**
   * Ends the attempt because of a bug in the gateway. Without this, a circuit breaker that uses the attempt
   * as its trial would wait forever.
   */
  crash(error: unknown): void {
    this.upstream.cancel()
    this.#finish()
    this.#reject(error)
    if (this.state !== 'over') this.close()
  }

  /** Called when the client has left and the rest of the response is read only for the charge. */
  protected onDraining(): void {}

  /** Charges the part of the response that was received, after the client has left. */
  protected abstract settleWithoutClient(): void

  /**
   * Ends the work on this response. If its rest was read only for the charge, the place among the responses
   * that are read like that becomes free.
   */
  protected close(): void {
    const { services, hold } = this.call
    if (this.state === 'draining') services.drains.give(hold.account.user.id, 1)
    this.state = 'over'
  }

  /**
   * Ends the attempt with a failure, of which the client has received nothing. `usage`: what an answer that
   * failed reports, which is charged if no later attempt is delivered.
   */
  protected undelivered(failure: Failure, usage?: ReportedUsage): void {
    this.#finish()
    this.call.settlement.noteUndelivered(this.target, usage)
    const isPaid = usage !== undefined && promptTokens(usage) + usage.output > 0
    this.#resolve(isPaid ? { ...failure, hasUsage: true } : failure)
  }

  /**
   * Ends the attempt of a response that cannot be delivered, by default because no memory became free in
   * time. The response is charged because the upstream must be paid, so no other upstream is tried.
   */
  protected refused(basis: ChargeBasis, failure: Failure = NO_MEMORY): void {
    this.refusedAfter(this.call.settlement.settle(this.target, basis, false), failure)
  }

  /** Ends the attempt of a response that is not delivered once it was charged. */
  protected refusedAfter(charging: Promise<unknown>, failure: Failure = NO_MEMORY): void {
    this.call.noteError(errorSentToClient(failure.refusal, failure))
    charging.then(
      () => this.undelivered(failure),
      (error: unknown) => this.#failed(error),
    )
  }

  /** Whether reading was paused so long for reasons of the client that a time-out or a break may follow from that. */
  protected get wasPausedLong(): boolean {
    return false
  }

  /** The failure in place of one of the channel if it was the gateway that did not read on. */
  protected ownFailure(failure: Failure): Failure | undefined {
    if (UNREADABLE_CAUSES.has(failure.cause)) return undefined
    const isShort = this.memory.isShort || this.upstream.isShort
    if (isShort && ruleOf(failure).counts) return NO_MEMORY
    if (failure.kind !== 'no_answer' || !this.wasPausedLong) return undefined
    return this.call.response.headersSent ? NOT_READ : NO_MEMORY
  }

  /**
   * Records that a stream that has begun ends because of a failure. Returns its last event; undefined without
   * `tap`.
   */
  protected interrupted(failure: Failure, tap: Tap | undefined): Buffer | undefined {
    const ended = this.ownFailure(failure) ?? failure
    if (ruleOf(ended).counts)
      this.call.noteCut(this.target.channel.name, {
        cause: ended.cause,
        upstreamMessage: undefined,
        isOfChannel: ended === failure && ruleOf(ended).blames !== 'gateway',
      })
    return this.#gatewayEvent(ended, tap)
  }

  /**
   * Records that a stream that has begun ends with an error of its upstream. Returns its last event: that error, or
   * one of the gateway if the error is about the operator's account; undefined without `tap`.
   */
  protected endedByError(error: StreamError, tap: Tap | undefined, hasContent: boolean): Buffer | undefined {
    const { call, target } = this
    const failure = failureInAnswer(target, error, IN_STREAM)
    const { rest, client } = ruleOf(failure)
    const isOfChannel = error.culprit === 'upstream' || (!hasContent && rest === 'breaker')
    const text = streamErrorText(target, error.data, true)
    call.noteCut(target.channel.name, {
      cause: IN_STREAM,
      upstreamMessage: text.message,
      isOfChannel,
      failure,
    })
    if (client === 'hidden') return this.#gatewayEvent(failure, tap)
    call.noteError(errorInStream(text))
    return tap && upstreamErrorFrame(target, tap, error)
  }

  #gatewayEvent(failure: Failure, tap: Tap | undefined): Buffer | undefined {
    const { inStream = UPSTREAM_INTERRUPTED, refusal } = failure
    this.call.noteError(interruptedStreamError(failure))
    return tap && gatewayErrorFrame(this.call, tap, inStream, refusal?.message ?? INTERRUPTED_MESSAGE)
  }

  /** Ends the attempt when `work`, which settles the call, has finished. */
  protected settled(work: Promise<unknown>): void {
    work.then(
      () => {
        this.#resolve('settled')
        this.#finish()
      },
      (error: unknown) => this.#failed(error),
    )
  }

  /**
   * Ends the attempt when `work`, which settles the call, has finished. If the charge cannot be written now,
   * a client that has received part of the stream gets the remaining bytes and an error event; a client that
   * has received nothing gets the error as its response.
   */
  protected continueUnlessSettled(
    work: Promise<void>,
    tap: Tap | undefined,
    left: { take(): Buffer | undefined },
  ): void {
    const tell = (error: unknown): void => {
      const { response } = this.call
      if (!(error instanceof StoreUnavailable) || !response.headersSent || !tap) throw error
      this.call.incoming.hasFailed = true
      if (!response.isAborted) response.end(storageErrorFrame(this.call, tap), left.take())
    }
    this.settled(work.catch(tell))
  }

  /** Counts the last bytes of a stream as memory until its client has read them: they may be an event of any size. */
  protected countLast(bytes: Buffer): void {
    this.memory.resize(bytes.length)
    if (this.memory.isShort) void this.memory.whenEnough()
  }

  #failed(error: unknown): void {
    this.#reject(error)
    this.#finish()
  }

  #finish(): void {
    this.#finishedAt = performance.now()
    if (this.memory.isUsed) this.call.response.whenRead(() => this.memory.resize(0))
  }
}
