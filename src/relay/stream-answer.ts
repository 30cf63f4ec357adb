import { ChatTap, chatErrorFrame, readUpstreamError } from '../protocols/chat/index.ts'
import { redact } from '../upstreams/redact.ts'
import type { Call, Target } from './call.ts'
import type { Ending } from './charge.ts'
import { type Failure, unanswered } from './failure.ts'
import { OutputWatch } from './output-watch.ts'
import type { Sink, Source } from './sink.ts'

/** How long a caller may leave what was sent to it unread. */
const UNREAD_MS = 60_000
/** How often a running stream notes what it has cost so far. */
const MARK_MS = 5_000

const CUT = { type: 'api_error', code: 'upstream_error' }
const USED_UP = { type: 'permission_error', code: 'insufficient_quota' }

/**
 * Takes in a stream: its frames go to the caller as they come, but for the last one, which waits until the charge is
 * durable. Its life: waiting (nothing sent) → open (first frame sent) → over.
 */
export class StreamAnswer implements Sink {
  readonly #call: Call
  readonly #target: Target
  readonly #source: Source
  readonly #tap: ChatTap
  readonly #watch: OutputWatch
  /** What came before the hold was durable. */
  #early: Buffer[] = []
  #open = false
  #over = false
  #contentType = ''
  #callerLeft = false
  #draining = false
  #counting = false
  #unreadSinceMs = 0
  #markedMs = Date.now()

  constructor(call: Call, target: Target, source: Source) {
    this.#call = call
    this.#target = target
    this.#source = source
    this.#tap = new ChatTap({ swallowUsage: target.gated.askedForUsage })
    this.#watch = new OutputWatch(call, this.#tap)
  }

  /** It is a success. */
  begin(contentType: string): void {
    this.#contentType = contentType
  }

  received(chunk: Buffer): void {
    if (this.#over) return
    this.#call.firstByte()
    let step: ReturnType<ChatTap['push']>
    try {
      step = this.#tap.push(chunk)
    } catch {
      this.#source.cancel()
      return this.failed(unanswered('an event was too large'))
    }
    if (this.#tap.error && !this.#tap.error.afterContent && this.#mayGoElsewhere) {
      this.#source.cancel()
      return this.failed(unanswered('error in the first event'))
    }
    if (step.forward) this.#forward(step.forward)
    if (step.terminal) this.ended()
    else if (!this.#watch.withinHold()) this.#checkHold()
  }

  ended(): void {
    if (this.#over) return
    const { ending, complete } = this.#tap.end()
    const error = this.#tap.error
    if (error) this.#breakOff(this.#errorFrame(error.data))
    else if (complete) void this.#finish(this.#callerLeft ? 'client_gone' : 'complete', ending, true)
    else this.failed(unanswered('stream ended early'))
  }

  failed(failure: Failure): void {
    if (this.#over) return
    if (this.#mayGoElsewhere || this.#call.hold.isLost) {
      this.#over = true
      this.#early = []
      this.#source.finish(failure)
    } else {
      this.#call.record.failure = failure.cause
      this.#breakOff(this.#ourFrame(CUT, 'the upstream broke off before the answer was complete'))
    }
  }

  /** The caller went away. */
  left(): void {
    if (this.#over || this.#callerLeft) return
    this.#callerLeft = true
    this.#unreadSinceMs = 0
    this.#draining = this.#target.channel.onClientGone === 'drain' && this.#call.drains.begin()
    if (this.#draining) this.#source.resume()
    else {
      this.#source.cancel()
      void this.#finish('client_gone', undefined, false)
    }
  }

  tick(nowMs: number): void {
    if (this.#over) return
    if (this.#unreadSinceMs > 0 && nowMs - this.#unreadSinceMs > UNREAD_MS) this.#call.response.destroy()
    if (nowMs - this.#markedMs < MARK_MS) return
    this.#markedMs = nowMs
    if (this.#tap.emittedBytes > 0) this.#call.hold.mark(this.#call.outputQuota(this.#watch.tokens))
  }

  // Nothing is on its way to the caller, and somebody is there to be answered: another channel may try.
  get #mayGoElsewhere(): boolean {
    return !this.#open && this.#early.length === 0 && !this.#callerLeft
  }

  // Gate one: nothing is sent before a crash can no longer lose the hold.
  #forward(bytes: Buffer): void {
    if (this.#callerLeft) return
    if (this.#call.hold.isDurable) return this.#send(bytes)
    if (this.#early.push(bytes) > 1) return
    this.#source.pause()
    this.#call.hold.durable.then(
      () => {
        this.#sendEarly()
        if (!this.#over && this.#unreadSinceMs === 0) this.#source.resume()
      },
      () => {
        this.#source.cancel()
        this.failed(unanswered('the hold could not be written'))
      },
    )
  }

  #sendEarly(): void {
    const early = this.#early
    this.#early = []
    const [only] = early
    if (only && !this.#callerLeft) this.#send(early.length === 1 ? only : Buffer.concat(early))
  }

  #send(bytes: Buffer): void {
    this.#begin()
    if (this.#call.response.write(bytes) || this.#unreadSinceMs > 0) return
    this.#unreadSinceMs = Date.now()
    this.#source.pause()
    this.#call.response.once('drain', () => {
      this.#unreadSinceMs = 0
      if (!this.#counting) this.#source.resume()
    })
  }

  #begin(): void {
    if (this.#open) return
    this.#open = true
    this.#call.response.writeHead(200, {
      ...this.#call.headers(this.#contentType),
      'x-accel-buffering': 'no',
    })
  }

  // The hold seems used up: reading stops until an exact count has told.
  #checkHold(): void {
    if (this.#counting || this.#over) return
    this.#counting = true
    this.#source.pause()
    void this.#watch.isUsedUp().then((usedUp) => {
      this.#counting = false
      if (this.#over) return
      if (usedUp) {
        this.#source.cancel()
        this.#breakOff(this.#ourFrame(USED_UP, 'the quota held for this answer is used up'))
      } else if (this.#unreadSinceMs === 0) this.#source.resume()
    })
  }

  #breakOff(lastFrame: Buffer): void {
    void this.#finish(this.#callerLeft ? 'client_gone' : 'cut', lastFrame, false)
  }

  // Gate two: the last frame goes out, in a write of its own, once the charge is durable.
  async #finish(ending: Ending, lastFrame: Buffer | undefined, whole: boolean): Promise<void> {
    this.#over = true
    if (this.#draining) this.#call.drains.end()
    const tap = this.#tap
    if (ending === 'cut' && tap.emittedBytes === 0) this.#call.settleForNothing(this.#target)
    else {
      const hasText = tap.emittedBytes > 0
      const delivered = this.#open || this.#early.length > 0 || ending === 'complete'
      await this.#call.settle(
        this.#target,
        { ending, whole, reported: tap.usage, hasText: () => hasText, text: () => tap.text },
        delivered,
      )
    }
    if (lastFrame && !this.#callerLeft) {
      this.#sendEarly()
      this.#begin()
      this.#call.response.end(lastFrame)
    }
    this.#source.finish('settled')
  }

  #ourFrame(kind: { type: string; code: string }, message: string): Buffer {
    return chatErrorFrame({ ...kind, message: `${message} (request id: ${this.#call.hold.facts.id})` })
  }

  #errorFrame(data: string): Buffer {
    const said = readUpstreamError(Buffer.from(data))
    const message = redact(said.message ?? 'the upstream reported an error', this.#target.channel)
    return chatErrorFrame({ type: said.type ?? CUT.type, code: said.code ?? CUT.code, message })
  }
}
