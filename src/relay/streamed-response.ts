import { NO_USAGE, type Usage } from '../domain/usage.ts'
import type { TapStep } from '../protocols/sse/stream-tap.ts'
import { UPSTREAM_CUT, gatewayErrorFrame, upstreamErrorFrame, HOLD_USED_UP } from './error-frames.ts'
import type { Call, Target } from './call.ts'
import type { Ending } from './charge.ts'
import { type Failure, errorInFirstEvent, streamErrorText, noUsableResponse, unreadableStream } from './failure.ts'
import { OutgoingBytes } from './outgoing-bytes.ts'
import { OutputWatch } from './output-watch.ts'
import { PromptCount } from './prompt-count.ts'
import type { Tap } from './dialects/dialect.ts'
import type { Source, ResponseHandler } from './response-handler.ts'

/** Bytes that are read at a time where a hold is nearly used up: some dozen events. */
const NEAR_THE_END = 4_096
/** How long a caller may leave what was sent to it unread. */
const UNREAD_MS = 60_000
/** How often a running stream notes what it has cost so far. */
const MARK_MS = 5_000

/** The frame that a stream ends with; made when it is known what was charged. */
type LastFrame = (charged: Usage) => Buffer

/**
 * Takes in a stream: its frames go to the caller as they come, but for the last one, which waits until the
 * charge is durable. Its life: waiting (nothing sent) → open (first frame sent) → over.
 */
export class StreamedResponse implements ResponseHandler {
  readonly #call: Call
  readonly #target: Target
  readonly #source: Source
  readonly #tap: Tap
  readonly #watch: OutputWatch
  readonly #prompt: PromptCount | undefined
  #contentType = ''
  /** Sent at the end of a read, and once the hold is durable. */
  readonly #outgoing = new OutgoingBytes()
  #open = false
  #over = false
  #callerLeft = false
  #draining = false
  #markedMs = performance.now()
  // Why nothing is read for the moment: gate one is shut, an exact count is made, the caller has unread
  // bytes.
  #gateShut = false
  #counting = false
  #unreadSinceMs = 0
  /** What came while an exact count was made, or with what made it necessary. */
  #unread: Buffer[] = []
  #hasEnded = false

  constructor(call: Call, target: Target, source: Source) {
    this.#call = call
    this.#target = target
    this.#source = source
    const { prepared } = target
    this.#prompt = prepared.beginsWithPrompt ? new PromptCount(call) : undefined
    this.#tap = prepared.tap(() => this.#prompt?.tokens ?? 0)
    this.#watch = new OutputWatch(call, this.#tap)
  }

  begin(contentType: string): void {
    this.#contentType = contentType
  }

  received(chunk: Buffer): void {
    if (this.#over) return
    this.#call.noteFirstByte()
    this.#unread.push(chunk)
    if (this.#prompt?.isPending) this.#awaitPrompt(this.#prompt)
    else this.#takeUnread()
  }

  // One read may bring more than a hold pays for: what is not affordable must not have gone on before that is
  // known.
  #takeUnread(): void {
    while (!this.#over && !this.#counting) {
      const chunk = this.#unread.shift()
      if (!chunk) break
      const most = Math.max(NEAR_THE_END, this.#watch.affordableBytes)
      if (chunk.length > most) this.#unread.unshift(chunk.subarray(most))
      this.#take(chunk.length > most ? chunk.subarray(0, most) : chunk)
    }
    if (!this.#gateShut) this.#sendOutgoing()
    if (this.#hasEnded && !this.#counting) this.ended()
  }

  #take(chunk: Buffer): void {
    let step: TapStep
    try {
      step = this.#tap.push(chunk)
    } catch (error) {
      this.#source.cancel()
      return this.failed(unreadableStream(error))
    }
    const { error } = this.#tap
    if (error && !error.afterContent && this.#mayGoElsewhere) {
      this.#source.cancel()
      return this.failed(errorInFirstEvent(this.#target.channel, error.data))
    }
    if (step.forward) this.#forward(step.forward)
    if (step.terminal) this.ended()
    else if (!this.#watch.isWithinHold(!this.#callerLeft)) this.#checkHold()
  }

  ended(): void {
    if (this.#over) return
    this.#hasEnded = true
    if (this.#counting) return
    let complete: boolean
    try {
      complete = this.#tap.end().complete
    } catch (error) {
      return this.failed(unreadableStream(error))
    }
    const { error } = this.#tap
    if (error && !error.afterContent && this.#mayGoElsewhere)
      this.failed(errorInFirstEvent(this.#target.channel, error.data))
    else if (error) {
      const said = streamErrorText(this.#target.channel, error.data)
      this.#call.noteCut(this.#target.channel.name, 'error in the stream', said.message)
      this.#breakOff(upstreamErrorFrame(this.#call, this.#target, this.#tap, error))
    } else if (complete) {
      const ending = this.#callerLeft ? 'client_gone' : 'complete'
      this.#finish(ending, (charged) => this.#tap.last(charged), true)
    } else this.failed(noUsableResponse('stream ended early'))
  }

  failed(failure: Failure): void {
    if (this.#over) return
    if (this.#mayGoElsewhere) {
      this.#close()
      this.#outgoing.drop()
      return this.#source.fail(failure)
    }
    if (failure.blames !== 'nobody') this.#call.noteCut(this.#target.channel.name, failure.cause)
    const reason = failure.refusal?.message ?? 'the upstream broke off before the answer was complete'
    this.#breakOff(gatewayErrorFrame(this.#call, this.#tap, UPSTREAM_CUT, reason))
  }

  left(reached: boolean): void {
    if (this.#over || this.#callerLeft) return
    this.#callerLeft = true
    this.#unreadSinceMs = 0
    this.#draining = reached && this.#target.channel.onClientGone === 'drain' && this.#call.drains.begin()
    if (this.#draining) return this.#flow()
    this.#source.cancel()
    if (reached) this.#finish('client_gone', undefined, false)
    else {
      this.#close()
      this.#call.settleForNothing(this.#target)
      this.#source.conclude(Promise.resolve())
    }
  }

  tick(nowMs: number): void {
    if (this.#over) return
    if (this.#unreadSinceMs > 0 && nowMs - this.#unreadSinceMs > UNREAD_MS) this.#call.response.destroy()
    if (!this.#open) {
      this.#outgoing.tick(nowMs)
      if (!this.#gateShut) this.#sendOutgoing()
    }
    if (nowMs - this.#markedMs < MARK_MS) return
    this.#markedMs = nowMs
    if (this.#tap.emittedBytes > 0) this.#call.mark(this.#watch.tokens)
  }

  // Nothing is on its way to the caller, and somebody is there to be answered: another channel may try.
  get #mayGoElsewhere(): boolean {
    return !this.#open && !this.#outgoing.isDue && !this.#callerLeft
  }

  #flow(): void {
    if (this.#over || !(this.#gateShut || this.#counting || this.#unreadSinceMs > 0)) this.#source.resume()
    else this.#source.pause()
  }

  // Gate one: nothing is sent before a crash can no longer lose the hold.
  #forward(bytes: Buffer): void {
    if (this.#callerLeft) return
    this.#outgoing.add(bytes, this.#tap.sawEvent || this.#tap.isMidEvent)
    if (this.#gateShut || this.#call.hold.isDurable) return
    this.#gateShut = true
    this.#flow()
    this.#after(this.#call.hold.durable, (isDurable) => {
      this.#gateShut = false
      if (isDurable) {
        this.#sendOutgoing()
        return this.#flow()
      }
      this.#outgoing.drop()
      this.#source.cancel()
      this.failed(noUsableResponse('the hold could not be written'))
    })
  }

  #sendOutgoing(): void {
    const bytes = this.#outgoing.take()
    if (!bytes || this.#callerLeft) return
    this.#openAnswer()
    if (this.#call.response.write(bytes) || this.#unreadSinceMs > 0) return
    this.#unreadSinceMs = performance.now()
    this.#flow()
    this.#call.response.whenDrained(() => {
      this.#unreadSinceMs = 0
      this.#flow()
    })
  }

  #openAnswer(): void {
    if (this.#open) return
    this.#open = true
    this.#call.response.writeHead(200, {
      ...this.#call.headers(this.#contentType, this.#target),
      'x-accel-buffering': 'no',
    })
  }

  // The first event tells the tokens of the prompt, which are being counted.
  #awaitPrompt(prompt: PromptCount): void {
    if (this.#counting) return
    this.#counting = true
    this.#flow()
    this.#after(prompt.ready(), () => {
      this.#counting = false
      this.#takeUnread()
      this.#flow()
    })
  }

  // The hold seems used up: reading stops until an exact count has told.
  #checkHold(): void {
    if (this.#counting || this.#over) return
    this.#counting = true
    this.#flow()
    this.#after(this.#watch.isUsedUp(), (isUsedUp) => {
      this.#counting = false
      if (!isUsedUp || this.#over) {
        this.#takeUnread()
        return this.#flow()
      }
      this.#source.cancel()
      this.#breakOff(gatewayErrorFrame(this.#call, this.#tap, HOLD_USED_UP, 'the quota held for this answer is used up'))
    })
  }

  // Exceptions after waiting end this call alone, as in the attempt's own callbacks.
  #after<Told>(waited: Promise<Told>, goOn: (told: Told) => void): void {
    waited.then(goOn).catch((error: unknown) => this.#source.unforeseen(error))
  }

  #breakOff(lastFrame: Buffer): void {
    this.#finish(this.#callerLeft ? 'client_gone' : 'cut', () => lastFrame, false)
  }

  abandon(): void {
    if (this.#over) return
    this.#close()
    if (this.#draining) this.#call.drains.end()
  }

  #close(): void {
    this.#over = true
    this.#tap.release()
  }

  #finish(ending: Ending, lastFrame: LastFrame | undefined, whole: boolean): void {
    this.#close()
    // What an upstream says after its last word is thrown away, not left to stop up its connection.
    this.#flow()
    if (this.#draining) this.#call.drains.end()
    this.#source.conclude(this.#settleAndEnd(ending, lastFrame, whole))
  }

  // Gate two: the last frame goes out, in a write of its own, once the charge is durable.
  async #settleAndEnd(ending: Ending, lastFrame: LastFrame | undefined, whole: boolean): Promise<void> {
    const tap = this.#tap
    const hasText = tap.emittedBytes > 0
    let charged: Usage = NO_USAGE
    if (ending === 'cut' && tap.contentFrames === 0) this.#call.settleForNothing(this.#target)
    else {
      charged = await this.#call.settle(
        this.#target,
        { ending, whole, reported: tap.usage, hasText: () => hasText, text: () => tap.text },
        this.#open || !this.#callerLeft,
      )
    }
    if (!lastFrame || this.#callerLeft) return
    this.#outgoing.release()
    this.#sendOutgoing()
    this.#openAnswer()
    this.#call.response.end(lastFrame(charged))
  }
}
