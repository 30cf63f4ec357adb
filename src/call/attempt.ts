import type { TransportError, UpstreamRequest, UpstreamResponseHead } from '@sluice/http1'
import type { ResponseMemory } from '../limits/request-memory.ts'
import type { CountedAttempt } from '../upstreams/channel-health.ts'
import type { ChannelLoad } from '../upstreams/channel-load.ts'
import type { AnswerListener } from '../upstreams/provider.ts'
import { redact } from '../upstreams/redact.ts'
import { AnswerInAnyForm } from './answer-in-any-form.ts'
import type { Call } from './call.ts'
import type { AttemptWatcher } from './feature.ts'
import {
  CALL_STOPPED,
  type Failure,
  failureOfAnswer,
  failureWithoutResponse,
  GATEWAY_STOPPING,
  SENT_CALL_STOPPED,
} from './failure.ts'
import { PassthroughResponse } from './passthrough-response.ts'
import type { AttemptEnd, ResponseHandler } from './response-handler.ts'
import { responseMemory } from './response-memory.ts'
import { StreamedResponse } from './streamed-response.ts'
import { UpstreamFlow } from './upstream-flow.ts'
import { WholeResponse } from './whole-response.ts'
import type { AttemptTarget } from './request-stages.ts'

/**
 * Milliseconds for which an upstream may continue to send after the attempt ended, so that its connection can
 * be reused.
 */
const MAX_SENDING_ON_MS = 2_000

/**
 * One request to one upstream with one key. The status and content type of the response decide which handler
 * receives it.
 */
export class Attempt implements AnswerListener {
  readonly #call: Call
  readonly #target: AttemptTarget
  readonly #upstream = new UpstreamFlow()
  readonly #handler: ResponseHandler
  readonly #load: ChannelLoad
  readonly #startedAt: number
  readonly #watcher: AttemptWatcher | undefined
  /** What counts the attempt at its channel, until the answer has begun. */
  #counted: CountedAttempt | undefined
  /** Index in the set of running attempts; only the set changes it. */
  index = -1
  #error: ErrorResponse | undefined
  #answer: AnswerInAnyForm | undefined
  #succeeded = false
  #hasFirstByte = false

  /** `now` is a reading of `performance.now()`. */
  constructor(
    call: Call,
    target: AttemptTarget,
    load: ChannelLoad,
    now: number,
    watcher: AttemptWatcher | undefined,
    counted?: CountedAttempt,
  ) {
    this.#watcher = watcher
    this.#counted = counted
    this.#call = call
    this.#target = target
    this.#load = load
    this.#startedAt = now
    const { passed } = target.request
    if (passed) this.#handler = new PassthroughResponse(call, target, this.#upstream, passed)
    else if (call.plan.request.stream) this.#handler = new StreamedResponse(call, target, this.#upstream)
    else this.#handler = new WholeResponse(call, target, this.#upstream)
  }

  /** Resolves once with the outcome. Rejects if the call could not be settled. */
  get end(): Promise<AttemptEnd> {
    return this.#handler.end
  }

  /** Whether the upstream accepted the request, which shows that its key works. */
  get succeeded(): boolean {
    return this.#succeeded
  }

  /** Whether nothing more will arrive from the upstream. */
  get isSilent(): boolean {
    return this.#upstream.isSilent
  }

  get isStream(): boolean {
    return this.#call.plan.request.stream
  }

  /** Whether the attempt has settled the call or failed. */
  get isFinished(): boolean {
    return this.#handler.finishedAt > 0
  }

  /** Must be called as soon as a request is being sent. `send` sends the same request with another body. */
  onSent(request: UpstreamRequest, send: (body: Buffer) => void): void {
    this.#upstream.start(request, send)
  }

  /** Handles the disconnect of the client. */
  onClientLeft(): void {
    const isReached = this.#isReached
    this.#guarded(() => this.#handler.onClientLeft(isReached))
  }

  /** Output tokens and cost so far, by the gateway's own count. */
  get progress(): { readonly tokens: number; readonly cost: number } {
    return this.#handler.progress
  }

  /** Ends the attempt because its call is stopped: from dispatch on, it is charged. */
  stop(): void {
    if (!this.isFinished) this.#giveUp(this.#isReached ? SENT_CALL_STOPPED : CALL_STOPPED)
  }

  /** Ends the attempt because the gateway stops. */
  stopWithGateway(): void {
    if (!this.isFinished) this.#giveUp(GATEWAY_STOPPING)
  }

  /** Whether the upstream may be working on the request, or has answered the first of several. */
  get #isReached(): boolean {
    return (this.#upstream.isSent || this.#succeeded) && !this.#error
  }

  /**
   * Checks the time limits of the attempt. Called once a second; `now` is in milliseconds of
   * `performance.now()`.
   */
  tick(now: number): void {
    if (this.isFinished) {
      if (now - this.#handler.finishedAt > MAX_SENDING_ON_MS) this.cancel()
    } else if (now < this.#startedAt + this.#target.channel.timeouts.total)
      this.#guarded(() => this.#handler.onTick(now))
    else this.#giveUp(failureWithoutResponse('total time-out'))
  }

  newMemory(): ResponseMemory {
    return responseMemory(this.#call)
  }

  onHead(head: UpstreamResponseHead): void {
    const { status, contentType, headers } = head
    this.#watcher?.head?.(head)
    this.#call.noteHead(headers)
    if (status < 200 || status > 299 || status === 204) {
      this.#error = new ErrorResponse(this.#target, head)
    } else {
      this.#succeeded = true
      this.#answer = new AnswerInAnyForm(this.#call, this.#target, this.#handler, this.#upstream, contentType)
    }
  }

  onData(chunk: Buffer): void {
    try {
      if (!this.#hasFirstByte) this.#noteFirstByte()
      this.#watcher?.received?.(chunk)
      if (this.#error) {
        if (this.#error.add(chunk)) this.#giveUp(this.#error.failure)
        return
      }
      this.#answer?.onData(chunk)
      if (!this.#counted || !this.#handler.hasContent) return
      this.#counted.answered()
      this.#counted = undefined
    } catch (error) {
      this.#handler.crash(error)
    }
  }

  onEnd(): void {
    this.#upstream.noteSilence()
    this.#guarded(() => {
      if (this.#error) this.#handler.onFailure(this.#error.failure)
      else this.#answer?.onEnd()
    })
  }

  onError(error: TransportError): void {
    // The error may be about what came, so that the upstream still sends.
    this.cancel()
    this.#guarded(() => this.#handler.onFailure(this.#error?.failure ?? failureOf(error, this.#target)))
  }

  /** Cancels the upstream request; nothing is received afterwards. */
  cancel(): void {
    this.#upstream.cancel()
  }

  #noteFirstByte(): void {
    this.#hasFirstByte = true
    const { model, request } = this.#call.plan
    if (this.#error || model.balance !== 'latency') return
    this.#load.noteFirstByte(this.#target.channel, request, performance.now() - this.#startedAt)
  }

  #giveUp(failure: Failure): void {
    this.cancel()
    this.#guarded(() => this.#handler.onFailure(failure))
  }

  // Runs a rare callback, and passes its exception to the handler; `onData` does the same without creating a
  // closure.
  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#handler.crash(error)
    }
  }
}

function failureOf({ message, wasReused, detail }: TransportError, { channel }: AttemptTarget): Failure {
  const failure = failureWithoutResponse(message, detail === undefined ? undefined : redact(detail, channel))
  return wasReused ? { ...failure, kind: 'connection_lost' } : failure
}

/** Maximum bytes of an upstream's error body that are read. */
const MAX_BYTES = 64 * 1024

/** A response without success; its body contains the reason. */
class ErrorResponse {
  readonly #target: AttemptTarget
  readonly #head: UpstreamResponseHead
  readonly #chunks: Buffer[] = []
  #length = 0

  constructor(target: AttemptTarget, head: UpstreamResponseHead) {
    this.#target = target
    this.#head = head
  }

  /** Adds bytes of the body. Returns true once the maximum is reached. */
  add(chunk: Buffer): boolean {
    this.#chunks.push(chunk)
    this.#length += chunk.length
    return this.#length >= MAX_BYTES
  }

  /** The failure as described by the bytes received. */
  get failure(): Failure {
    const body = Buffer.concat(this.#chunks).subarray(0, MAX_BYTES)
    const { request } = this.#target
    return failureOfAnswer(this.#target, {
      status: this.#head.status,
      body: request.errorBody?.(body) ?? body,
      head: this.#head,
    })
  }
}
