import type { UpstreamResponseListener, UpstreamResponseHead, UpstreamRequest, TransportError } from '../upstreams/upstream-request.ts'
import { isMediaType } from '../upstreams/media-type.ts'
import type { Call, Target } from './call.ts'
import { type Failure, STOPPING, noUsableResponse } from './failure.ts'
import { ErrorResponse } from './error-response.ts'
import type { AttemptEnd, Sink, Source, ResponseHandler } from './response-handler.ts'
import { StreamedResponse } from './streamed-response.ts'
import { WholeResponse } from './whole-response.ts'

/** How long an upstream may go on after its last word, so that its connection can be used again. */
const AFTERMATH_MS = 2_000

/** One request to one upstream with one key. Decides by status and content type who takes in the answer. */
export class Attempt implements UpstreamResponseListener, Source {
  /** Resolves once, with how it ended; rejects where the call could not be settled. */
  readonly end: Promise<AttemptEnd>
  readonly #call: Call
  readonly #target: Target
  readonly #wanted: ResponseHandler
  readonly #deadlineMs: number
  readonly #resolve: (end: AttemptEnd) => void
  readonly #reject: (error: unknown) => void
  /** Of the roster of those under way. */
  index = -1
  #sink: Sink
  #exchange: UpstreamRequest | undefined
  #succeeded = false
  #silent = false
  #finishedMs = 0

  constructor(call: Call, target: Target, nowMs: number) {
    this.#call = call
    this.#target = target
    this.#deadlineMs = nowMs + target.channel.timeouts.totalMs
    const { promise, resolve, reject } = Promise.withResolvers<AttemptEnd>()
    this.end = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#wanted = call.request.stream
      ? new StreamedResponse(call, target, this)
      : new WholeResponse(call, target, this)
    this.#sink = this.#wanted
  }

  /** The upstream took the request for good: its key works. */
  get succeeded(): boolean {
    return this.#succeeded
  }

  /** Nothing more will come from the upstream. */
  get isSilent(): boolean {
    return this.#silent
  }

  get isStream(): boolean {
    return this.#call.request.stream
  }

  /** The call is settled by it, or it has failed. */
  get isFinished(): boolean {
    return this.#finishedMs > 0
  }

  /** To be told as soon as the request is on its way. */
  sent(exchange: UpstreamRequest): void {
    this.#exchange = exchange
  }

  /** The caller went away. */
  left(): void {
    const reached = this.#exchange?.isSent === true && this.#sink === this.#wanted
    this.#guarded(() => this.#wanted.left(reached))
  }

  /** The gateway stops and can wait no longer. */
  stop(): void {
    if (this.isFinished) return
    this.cancel()
    this.#guarded(() => this.#wanted.failed(STOPPING))
  }

  /** Once a second. */
  tick(nowMs: number): void {
    if (this.isFinished) {
      if (nowMs - this.#finishedMs > AFTERMATH_MS) this.cancel()
    } else if (nowMs < this.#deadlineMs) this.#guarded(() => this.#wanted.tick(nowMs))
    else {
      this.cancel()
      this.#guarded(() => this.#wanted.failed(noUsableResponse('total time-out')))
    }
  }

  onHead({ status, contentType, retryAfter }: UpstreamResponseHead): void {
    if (status < 200 || status > 299 || status === 204) {
      this.#sink = new ErrorResponse(this, this.#wanted, this.#target.channel, status, retryAfter)
    } else if (
      /^text\/event-stream\b/i.test(contentType) === this.#call.request.stream &&
      !/^text\/html\b/i.test(contentType)
    ) {
      this.#succeeded = true
      this.#wanted.begin(isMediaType(contentType) ? contentType : this.#ownContentType)
    } else {
      this.cancel()
      this.#guarded(() => this.#wanted.failed(noUsableResponse('unexpected content type')))
    }
  }

  onData(chunk: Buffer): void {
    try {
      this.#sink.received(chunk)
    } catch (error) {
      this.unforeseen(error)
    }
  }

  onEnd(): void {
    this.#silent = true
    this.#guarded(() => this.#sink.ended())
  }

  onError(error: TransportError): void {
    this.#silent = true
    this.#guarded(() => this.#sink.failed(failureOf(error)))
  }

  pause(): void {
    this.#exchange?.pause()
  }

  resume(): void {
    this.#exchange?.resume()
  }

  cancel(): void {
    this.#silent = true
    this.#exchange?.cancel()
  }

  fail(failure: Failure): void {
    this.#finish()
    this.#resolve(failure)
  }

  conclude(work: Promise<unknown>): void {
    work.then(() => this.#resolve('settled'), this.#reject).finally(() => this.#finish())
  }

  get #ownContentType(): string {
    return this.isStream ? 'text/event-stream' : 'application/json'
  }

  // For what happens once or seldom in an attempt: `received` does the same without a closure.
  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.unforeseen(error)
    }
  }

  // An attempt that never ended would keep its trial open.
  unforeseen(error: unknown): void {
    this.cancel()
    this.#finish()
    this.#reject(error)
    this.#wanted.abandon()
  }

  #finish(): void {
    this.#finishedMs = performance.now()
  }
}

function failureOf({ message, wasReused: wasKept }: TransportError): Failure {
  const failure = noUsableResponse(message)
  return wasKept ? { ...failure, next: 'same-again' } : failure
}
