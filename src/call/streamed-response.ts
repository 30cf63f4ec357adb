import { setImmediate as nextTurn } from 'node:timers/promises'
import { areFilteredEnds } from '@sluice/wire/end-reasons'
import { NO_USAGE, type Usage } from '@sluice/wire/usage'
import type { TapPushResult } from '@sluice/wire/sse/stream-tap'
import { answerOrigin, continuedCall } from './answer-origin.ts'
import type { Call } from './call.ts'
import { DeliveryGate } from './delivery-gate.ts'
import type { Tap, ResponseEnding } from './dialects/answer-reader.ts'
import { quotaUsedUpFrame, quotaUsedUpError } from './error-frames.ts'
import {
  failureInAnswer,
  type Failure,
  GATEWAY_STOPPING,
  isStoppedCall,
  failureWithoutResponse,
  UNREADABLE_STREAM,
  failureOfWrite,
  FILTERED_ANSWER,
} from './failure.ts'
import { OutgoingBytes } from './outgoing-bytes.ts'
import { OutputWatch } from './output-watch.ts'
import { chargeBasisOfStream } from './price-usage.ts'
import type { CheckTurns } from './check-turns.ts'
import { PromptCount } from './prompt-count.ts'
import { ReadPauses } from './read-pauses.ts'
import { ResponseHandler } from './response-handler.ts'
import type { UpstreamFlow } from './upstream-flow.ts'
import type { AttemptTarget } from './request-stages.ts'

/**
 * Number of bytes processed at a time while the amount reserved for a call is nearly used up: a few dozen
 * events.
 */
const MIN_READ_BYTES = 4_096
/** Milliseconds for which data sent to a client may remain unread, before the client is disconnected. */
const MAX_UNREAD_MS = 60_000
/** Interval, in milliseconds, at which a running stream records its cost so far. */
const MARK_INTERVAL_MS = 5_000
/**
 * Milliseconds for which the beginning of a stream is held back, because the event after it may be an error, after
 * which another channel is tried, or a filter, after which another model may be.
 */
const MAX_LEAD_MS = 1_000
const NO_BYTES = Buffer.alloc(0)
/** Cause of the failure of a stream that begins with an error. */
const FIRST_EVENT = 'error in the first event'
/** Marks the end of the upstream's response in the queue of chunks. */
const END = Symbol('end')

/** Creates the last frame of a stream. Called when the charge is known. */
type LastFrame = (charged: Usage) => Buffer

/**
 * Handles a stream: its frames are sent to the client as they arrive, except for the last one, which waits
 * until the charge is durable.
 */
export class StreamedResponse extends ResponseHandler {
  readonly #tap: Tap
  readonly #watch: OutputWatch
  readonly #gate: DeliveryGate
  readonly #prompt: PromptCount | undefined
  readonly #pauses: ReadPauses
  /** Divides the check of the stream into turns; undefined if it is not checked. */
  readonly #checks: CheckTurns | undefined
  /** Bytes for the client. They are sent each time a chunk was read, once the call's hold is durable. */
  readonly #outgoing = new OutgoingBytes()
  /**
   * Chunks that have arrived but may not be processed yet, for example while tokens are counted; the last
   * entry says how the response ended.
   */
  readonly #unread: (Buffer | typeof END | Failure)[] = []
  readonly #keepAlive = new KeepAlive()
  /** Runs while leading events are held back. */
  #leadTimer: NodeJS.Timeout | undefined
  #clientPausedAt = 0
  /** Number of writes to the client. */
  #writes = 0
  #markedAt = performance.now()

  constructor(call: Call, target: AttemptTarget, upstream: UpstreamFlow) {
    super(call, target, upstream)
    const { request } = target
    this.#pauses = new ReadPauses(upstream)
    this.#checks = request.turns?.()
    this.#prompt = request.beginsWithPrompt ? new PromptCount(call) : undefined
    this.#tap = request.tap(() => this.#prompt?.tokens ?? 0, this.memory)
    this.#watch = new OutputWatch(call, target, this.#tap)
    this.#gate = new DeliveryGate(call.hold)
  }

  override get progress(): { readonly tokens: number; readonly cost: number } {
    return this.call.hasFirstByte ? this.#watch.progress : super.progress
  }

  onData(chunk: Buffer): void {
    if (this.state === 'over') return
    this.call.noteFirstByte()
    this.#unread.push(chunk)
    if (!this.#prompt?.isPending) return this.#takeUnread()
    // The first event must contain the number of prompt tokens, so the chunk waits until they are counted.
    if (!this.#pauses.has('count')) this.#readAfter('count', this.#prompt.ready())
  }

  onEnd(): void {
    if (this.state === 'over') return
    this.#unread.push(END)
    this.#takeUnread()
  }

  onFailure(failure: Failure): void {
    const isStop = isStoppedCall(failure) || failure === GATEWAY_STOPPING
    if (isStop && this.state !== 'over' && this.#tap.check?.holdsText && this.#tap.contentFrames > 0) {
      this.#tap.check?.stopChecking()
      // Text that no client has read was generated nevertheless, so it is charged.
      return this.#cut(failure)
    }
    if (this.#unread.length > 0 || this.#pauses.has('check')) this.#unread.push(failure)
    else if (this.state !== 'over') this.#complete(failure)
  }

  #fail(failure: Failure): void {
    if (this.state === 'over') return
    if (this.#mayGoElsewhere) {
      const own = this.ownFailure(failure)
      this.close()
      this.#outgoing.drop()
      if (failure.isCharged) return this.refused(this.#basis('stopped', false), failure)
      if (own) return this.refused(this.#basis('cut', false), own)
      return this.undelivered(failure, this.#tap.error && this.#tap.usage)
    }
    this.#cut(failure)
  }

  #cut(failure: Failure): void {
    this.#breakOff(this.interrupted(failure, this.#tap), failure.isCharged ? 'stopped' : 'cut')
  }

  override onTick(nowMs: number): void {
    if (this.state === 'over') return
    if (this.#pauses.has('client') && nowMs - this.#clientPausedAt > MAX_UNREAD_MS)
      this.call.response.destroyUnread()
    this.#keepClient(nowMs)
    if (nowMs - this.#markedAt < MARK_INTERVAL_MS) return
    this.#markedAt = nowMs
    this.#watch.mark()
  }

  // No keep-alive event is sent to a client that still has data to read.
  #keepClient(nowMs: number): void {
    const isBetweenEvents = !this.#tap.isMidEvent && !this.#outgoing.isDue && !this.#pauses.has('client')
    const keepAlive = (): Buffer | undefined => this.#tap.keepAliveFrame(false)
    const stream = { writes: this.#writes, isBetweenEvents, keepAlive }
    if (this.call.features.relaying(this.call, nowMs, stream)) return
    if (this.state === 'draining' || this.#pauses.isAnyBut('check') || this.#prompt?.isPending) return
    const frame = this.call.hasFirstByte ? this.#keepAlive.frameFor(this.#tap, nowMs) : undefined
    if (!frame) return
    this.#forward(frame)
    this.#sendOutgoing()
  }

  protected override get wasPausedLong(): boolean {
    return this.#pauses.areLong
  }

  protected override onDraining(): void {
    this.#pauses.end('client')
    this.#tap.check?.stopChecking()
    this.#tap.clientLeft?.()
  }

  protected settleWithoutClient(): void {
    this.#finish('client_gone', undefined, false)
  }

  protected override close(): void {
    super.close()
    clearTimeout(this.#leadTimer)
    this.#tap.release()
  }

  // One chunk may contain more output than the amount reserved for the call covers. Only the bytes that it
  // covers are forwarded before tokens are counted.
  #takeUnread(): void {
    while (this.state !== 'over' && !this.#pauses.mayNotRead) {
      const chunk = this.#unread.shift()
      if (!chunk) break
      if (chunk === END) {
        this.#sendOutgoing()
        return this.#complete()
      }
      if (!Buffer.isBuffer(chunk)) return this.#complete(chunk)
      // A short chunk is processed whatever it costs.
      const isShort = chunk.length <= MIN_READ_BYTES
      const affordable = isShort ? MIN_READ_BYTES : Math.max(MIN_READ_BYTES, this.#watch.affordableBytes)
      const max = this.#checks ? Math.min(affordable, this.#checks.length) : affordable
      if (chunk.length > max) this.#unread.unshift(chunk.subarray(max))
      const beganMs = this.#checks ? performance.now() : 0
      this.#take(chunk.length > max ? chunk.subarray(0, max) : chunk)
      if (this.#checks) this.#noteCheck(this.#checks, performance.now() - beganMs)
    }
    this.#sendOutgoing()
  }

  // All streams are checked in turns with other work.
  #noteCheck(checks: CheckTurns, ms: number): void {
    const turn = checks.note(ms)
    if (turn && this.state !== 'over' && !this.#pauses.mayNotRead) this.#readAfter('turn', turn)
  }

  #take(chunk: Buffer): void {
    let step: TapPushResult
    try {
      step = this.#tap.push(chunk)
    } catch {
      this.upstream.cancel()
      return this.#fail(UNREADABLE_STREAM)
    }
    const { error } = this.#tap
    if (error && !error.afterContent && this.#mayGoElsewhere) {
      this.upstream.cancel()
      return this.#fail(failureInAnswer(this.target, error, FIRST_EVENT))
    }
    if (step.forward) this.#forward(step.forward, step.terminal && this.#endsNow)
    if (this.#tap.check?.isBlocked) return this.#refuse(step.terminal && this.#tap.end().complete)
    const checking = this.#tap.check?.checking
    if (checking) this.#readAfter('check', checking)
    else if (step.terminal) {
      if (this.state !== 'draining') this.#watch.coverUses()
      this.#complete()
    } else if (this.memory.isShort) this.#readAfter('memory', this.memory.whenEnough())
    else if (!this.#watch.isWithinHold(this.state !== 'draining')) this.#checkHold()
  }

  // A check has ended the stream. What was generated is charged, but only the ending that the check wrote is
  // sent.
  #refuse(isComplete: boolean): void {
    if (!isComplete) this.upstream.cancel()
    const ending = this.state === 'draining' ? 'client_gone' : isComplete ? 'complete' : 'cut'
    this.#finish(ending, (charged) => this.#tap.check?.refusalBytes(charged) ?? NO_BYTES, isComplete)
  }

  // If the connection breaks after the stream has stated its finish reason, the response counts as complete.
  #complete(failure?: Failure): void {
    let isComplete: boolean
    try {
      isComplete = this.#tap.end().complete
    } catch {
      return this.#fail(UNREADABLE_STREAM)
    }
    const { error } = this.#tap
    if (error && !error.afterContent && this.#mayGoElsewhere)
      this.#fail(failureInAnswer(this.target, error, FIRST_EVENT))
    else if (error) this.#breakOff(this.endedByError(error, this.#tap, this.hasContent))
    else if (isComplete && this.#tap.check?.isBlocked) this.#refuse(true)
    else if (isComplete && this.#tap.check?.checking) this.#completeAfter(this.#tap.check.checking)
    else if (
      isComplete &&
      this.call.mayReplaceFiltered &&
      this.#mayGoElsewhere &&
      !this.hasContent &&
      areFilteredEnds(this.#tap.names?.reasons ?? [])
    )
      this.#fail(FILTERED_ANSWER)
    else if (isComplete) {
      const ending = this.state === 'draining' ? 'client_gone' : 'complete'
      this.#finish(ending, (charged) => this.#tap.finalBytes(charged), true)
    } else this.#fail(failure ?? failureWithoutResponse('stream ended early'))
  }

  #basis(ending: ResponseEnding, isComplete: boolean): ReturnType<typeof chargeBasisOfStream> {
    const collected = isComplete ? undefined : this.collected?.(ending)
    if (collected) return collected
    const { charging } = this.call.plan.request
    return chargeBasisOfStream(this.#tap, ending, isComplete, charging === 'free')
  }

  override get hasContent(): boolean {
    return this.#tap.contentFrames + this.#tap.tools.begun.length > 0
  }

  // Whether nothing was sent to a client that is still connected, so that another channel can be tried.
  get #mayGoElsewhere(): boolean {
    return this.state === 'waiting' && !this.#outgoing.isDue && !this.#gate.isParking
  }

  /** Whether a stream whose end marker was read is complete, so that it is charged at once. */
  get #endsNow(): boolean {
    const { error, check, isMidEvent, lasting } = this.#tap
    return !error && !check?.isBlocked && !check?.checking && !isMidEvent && !lasting?.continueInBackground
  }

  // `docs/ledger.md: Durability before delivery`: nothing is sent before the call's hold (its reserved quota)
  // is durable. `isEnd`: the stream ends with these bytes, so they wait for its charge instead.
  #forward(bytes: Buffer, isEnd = false): void {
    if (this.state === 'draining') return
    // If a filtered answer may be replaced, its content is waited for.
    const isDue = this.call.mayReplaceFiltered ? this.hasContent : this.#tap.sawEvent || this.#tap.isMidEvent
    this.#outgoing.add(bytes, isDue)
    if (!isDue) this.#leadTimer ??= setTimeout(() => this.#releaseLead(), MAX_LEAD_MS)
    if (isEnd || this.#pauses.has('hold')) return
    const continueInBackground = this.#tap.lasting?.continueInBackground
    const opening = this.#gate.open(
      continueInBackground && (async () => continueInBackground(await continuedCall(this.call, this.target))),
    )
    if (!opening) return
    this.#pauses.begin('hold')
    this.#after(opening, (isDurable) => {
      this.#pauses.remove('hold')
      if (isDurable) {
        // If the stream has already ended, its charge may become durable together with its hold. By waiting a
        // turn of the event loop, everything can be sent in one write.
        if (this.state === 'over') this.#after(nextTurn(), () => this.#sendOutgoing())
        else this.#sendOutgoing()
        return this.#pauses.apply()
      }
      this.#outgoing.drop()
      this.upstream.cancel()
      this.#fail(failureOfWrite(this.call.hold.writeFailure))
    })
  }

  #releaseLead(): void {
    if (this.state !== 'waiting') return
    this.#outgoing.release()
    this.#sendOutgoing()
  }

  /** Sends the bytes that are due, unless they must wait until the hold, or the charge in its place, is durable. */
  #sendOutgoing(): void {
    if (this.#pauses.has('hold') || !this.call.hold.isDurable) return
    const bytes = this.#outgoing.take()
    if (!bytes || this.call.response.isAborted) return
    this.#sendHead()
    this.#writes += 1
    if (this.call.response.write(bytes) || this.#pauses.has('client')) return
    this.#clientPausedAt = performance.now()
    this.#pauses.begin('client')
    this.call.response.whenDrained(() => this.#pauses.end('client'))
  }

  #sendHead(): void {
    const { response } = this.call
    if (response.headersSent) return
    if (this.state === 'waiting') this.state = 'open'
    response.writeHead(200, {
      ...this.call.headers(this.call.plan.dialect.streamType ?? this.contentType, this.target),
      'x-accel-buffering': 'no',
    })
  }

  // If the amount reserved for the call seems to be used up, reading pauses until the tokens are counted
  // exactly.
  #checkHold(): void {
    if (this.#pauses.has('count') || this.state === 'over') return
    this.#pauses.begin('count')
    this.#after(this.#watch.isUsedUp(this.state !== 'draining'), (isUsedUp) => {
      if (!isUsedUp || this.state === 'over') return this.#continueAfter('count')
      this.#pauses.remove('count')
      this.upstream.cancel()
      this.call.noteError(quotaUsedUpError(this.call))
      this.#breakOff(quotaUsedUpFrame(this.call, this.#tap))
    })
  }

  // Waits until the end of the stream is checked.
  #completeAfter(checking: Promise<void>): void {
    this.#pauses.begin('check')
    this.#after(checking, () => {
      this.#pauses.remove('check')
      if (this.state === 'over') return
      const { forward } = this.#tap.push(NO_BYTES)
      if (forward) this.#forward(forward)
      this.#complete()
    })
  }

  #readAfter(reason: 'count' | 'memory' | 'check' | 'turn', waited: Promise<unknown>): void {
    this.#pauses.begin(reason)
    this.#after(waited, () => this.#continueAfter(reason))
  }

  #continueAfter(reason: 'count' | 'memory' | 'check' | 'turn'): void {
    this.#pauses.remove(reason)
    // Forwards what was held back while it was checked.
    if (reason === 'check' && this.state !== 'over') this.#take(NO_BYTES)
    this.#takeUnread()
    this.#pauses.apply()
  }

  // An exception after waiting must end only this call, like one in the callbacks of `Attempt`.
  #after<Result>(waited: Promise<Result>, proceed: (result: Result) => void): void {
    waited.then(proceed).catch((error: unknown) => this.crash(error))
  }

  #breakOff(lastFrame: Buffer = NO_BYTES, ending: ResponseEnding = 'cut'): void {
    this.#finish(this.state === 'draining' ? 'client_gone' : ending, () => lastFrame, false)
  }

  #finish(ending: ResponseEnding, lastFrame: LastFrame | undefined, isComplete: boolean): void {
    this.close()
    // The rest of the response is read and discarded, so that its connection can be reused.
    this.#pauses.discardRest()
    this.continueUnlessSettled(this.#settleAndEnd(ending, lastFrame, isComplete), this.#tap, this.#outgoing)
  }

  // The last frame is sent once the charge is durable, together with everything that was not sent before.
  async #settleAndEnd(
    ending: ResponseEnding,
    lastFrame: LastFrame | undefined,
    isComplete: boolean,
  ): Promise<void> {
    const [tap, { response }] = [this.#tap, this.call]
    let charged: Usage = NO_USAGE
    if (this.#gate.isParking && (await this.#gate.goesOn(isComplete))) {
      // The upstream continues without its client; the call is charged when the end is known.
    } else if (ending === 'cut' && !this.hasContent)
      this.call.settlement.settleUndelivered(this.target, tap.error && tap.usage)
    else {
      const basis = this.#basis(ending, isComplete)
      const delivered = ending !== 'client_gone' || response.headersSent
      // After the first event, a client knows the response's id and may refer to it even if it received no
      // end.
      const known = isComplete || response.headersSent ? tap : undefined
      const charging = this.call.settlement.settle(this.target, basis, delivered, known)
      const keeping = isComplete && tap.lasting?.keep?.(answerOrigin(this.call, this.target), charging)
      charged = (await Promise.all([charging, keeping]))[0]
    }
    if (!lastFrame || ending === 'client_gone') return
    this.#outgoing.release()
    const before = this.#outgoing.take()
    const last = lastFrame(charged)
    this.countLast(last)
    this.#sendHead()
    response.end(last, before)
  }
}

/**
 * Milliseconds without an event after which a keep-alive event is sent. Clients end a stream after some
 * minutes of silence, proxies after one minute. Most clients do not count comments as events.
 */
export const MAX_SILENCE_MS = 15_000

/** Events that keep a stream alive while its upstream is slow; `docs/api.md: Events`. */
class KeepAlive {
  #events = -1
  #silentSince = 0

  /** Returns the event to send, if one is due. Must be called once a second. */
  frameFor(tap: Tap, nowMs: number): Buffer | undefined {
    if (tap.sentEvents !== this.#events) {
      this.#events = tap.sentEvents
      this.#silentSince = nowMs
      return undefined
    }
    if (nowMs - this.#silentSince < MAX_SILENCE_MS) return undefined
    this.#silentSince = nowMs
    return tap.keepAliveFrame()
  }
}
