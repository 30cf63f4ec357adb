import type {
  TransportError,
  UpstreamRequest,
  UpstreamResponseHead,
  UpstreamResponseListener,
} from '@sluice/http1'
import type { ChannelLoad } from '../upstreams/channel-load.ts'
import { isMediaType } from '../upstreams/media-type.ts'
import { redact } from '../upstreams/redact.ts'
import type { Call, Target } from './call.ts'
import { type Failure, failureOfStatus, noUsableResponse, STOPPING } from './failure.ts'
import { PassedResponse } from './passed-response.ts'
import type { AttemptEnd, ResponseHandler } from './response-handler.ts'
import { StreamedResponse } from './streamed-response.ts'
import { UpstreamFlow } from './upstream-flow.ts'
import { WholeResponse } from './whole-response.ts'

/** How long an upstream may send on after the attempt ended, so that its connection can be used again. */
const MAX_SENDING_ON_MS = 2_000

/** One request to one upstream with one key. Its status and content type decide who takes in the response. */
export class Attempt implements UpstreamResponseListener {
  readonly #call: Call
  readonly #target: Target
  readonly #upstream = new UpstreamFlow()
  readonly #handler: ResponseHandler
  readonly #load: ChannelLoad
  readonly #startedAt: number
  /** Position in the set of those under way, which alone changes it. */
  index = -1
  #error: ErrorResponse | undefined
  #succeeded = false
  #hasFirstByte = false

  /** `now` is a reading of `performance.now()`. */
  constructor(call: Call, target: Target, load: ChannelLoad, now: number) {
    this.#call = call
    this.#target = target
    this.#load = load
    this.#startedAt = now
    const { passed } = target.prepared
    if (passed) this.#handler = new PassedResponse(call, target, this.#upstream, passed)
    else if (call.request.stream) this.#handler = new StreamedResponse(call, target, this.#upstream)
    else this.#handler = new WholeResponse(call, target, this.#upstream)
  }

  /** Resolves once, with how it ended; rejects where the call could not be settled. */
  get end(): Promise<AttemptEnd> {
    return this.#handler.end
  }

  /** The upstream took the request for good: its key works. */
  get succeeded(): boolean {
    return this.#succeeded
  }

  /** Nothing more will come from the upstream. */
  get isSilent(): boolean {
    return this.#upstream.isSilent
  }

  get isStream(): boolean {
    return this.#call.request.stream
  }

  /** The call is settled by it, or it has failed. */
  get isFinished(): boolean {
    return this.#handler.finishedAt > 0
  }

  /** To be called as soon as a request is on its way; `send` sends the same request with another body. */
  onSent(request: UpstreamRequest, send: (body: Buffer) => void): void {
    this.#upstream.start(request, send)
  }

  /** The client left. */
  onClientLeft(): void {
    const isReached = this.#upstream.isSent && !this.#error
    this.#guarded(() => this.#handler.onClientLeft(isReached))
  }

  /** The gateway stops and can wait no longer. */
  stop(): void {
    if (!this.isFinished) this.#giveUp(STOPPING)
  }

  /** Called once a second. */
  tick(now: number): void {
    if (this.isFinished) {
      if (now - this.#handler.finishedAt > MAX_SENDING_ON_MS) this.cancel()
    } else if (now < this.#startedAt + this.#target.channel.timeouts.total)
      this.#guarded(() => this.#handler.onTick(now))
    else this.#giveUp(noUsableResponse('total time-out'))
  }

  onHead({ status, contentType, retryAfter }: UpstreamResponseHead): void {
    if (status < 200 || status > 299 || status === 204) {
      this.#error = new ErrorResponse(this.#target, status, retryAfter)
    } else if (this.#handler.accepts(contentType)) {
      this.#succeeded = true
      this.#handler.onSuccess(isMediaType(contentType) ? contentType : this.#ownContentType)
    } else this.#giveUp(noUsableResponse('unexpected content type'))
  }

  onData(chunk: Buffer): void {
    try {
      if (!this.#hasFirstByte) this.#noteFirstByte()
      if (!this.#error) this.#handler.onData(chunk)
      else if (this.#error.add(chunk)) this.#giveUp(this.#error.failure)
    } catch (error) {
      this.#handler.crash(error)
    }
  }

  onEnd(): void {
    this.#upstream.noteSilence()
    this.#guarded(() => {
      if (this.#error) this.#handler.onFailure(this.#error.failure)
      else this.#handler.onEnd()
    })
  }

  onError(error: TransportError): void {
    this.#upstream.noteSilence()
    this.#guarded(() => this.#handler.onFailure(this.#error?.failure ?? failureOf(error, this.#target)))
  }

  /** Gives up the upstream request; nothing is received afterwards. */
  cancel(): void {
    this.#upstream.cancel()
  }

  #noteFirstByte(): void {
    this.#hasFirstByte = true
    if (this.#error || !this.#call.isBalancedByLatency) return
    const { model, request } = this.#call
    const tookMs = performance.now() - this.#startedAt
    this.#load.noteFirstByte(this.#target.channel, { model, stream: request.stream }, tookMs)
  }

  get #ownContentType(): string {
    return this.isStream ? 'text/event-stream' : 'application/json'
  }

  #giveUp(failure: Failure): void {
    this.cancel()
    this.#guarded(() => this.#handler.onFailure(failure))
  }

  // Catches what happens once or seldom in an attempt; `onData` does the same without a closure.
  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#handler.crash(error)
    }
  }
}

function failureOf({ message, wasReused, detail }: TransportError, { channel }: Target): Failure {
  const failure = noUsableResponse(message, detail === undefined ? undefined : redact(detail, channel))
  return wasReused ? { ...failure, next: 'same-again' } : failure
}

/** Bytes of an upstream's error body that are read. */
const MAX_BYTES = 64 * 1024

/** A response that is no success: its body says why. */
class ErrorResponse {
  readonly #target: Target
  readonly #status: number
  readonly #retryAfter: string | undefined
  readonly #chunks: Buffer[] = []
  #length = 0

  constructor(target: Target, status: number, retryAfter: string | undefined) {
    this.#target = target
    this.#status = status
    this.#retryAfter = retryAfter
  }

  /** Adds bytes of the body; true once there are enough of them. */
  add(chunk: Buffer): boolean {
    this.#chunks.push(chunk)
    this.#length += chunk.length
    return this.#length >= MAX_BYTES
  }

  /** The failure, by the bytes that came. */
  get failure(): Failure {
    const body = Buffer.concat(this.#chunks).subarray(0, MAX_BYTES)
    const { prepared } = this.#target
    return failureOfStatus(this.#target, this.#status, prepared.errorBody?.(body) ?? body, this.#retryAfter)
  }
}
