import type { IncomingHttpHeaders } from 'node:http'
import type { Answer, Exchange } from '../upstreams/http.ts'
import type { Call, Target } from './call.ts'
import { unanswered } from './failure.ts'
import { RefusedAnswer } from './refused-answer.ts'
import type { AttemptEnd, Sink, Source } from './sink.ts'
import { StreamAnswer } from './stream-answer.ts'
import { WholeAnswer } from './whole-answer.ts'

/** One request to one upstream with one key. Decides by status and content type who takes in the answer. */
export class Attempt implements Answer, Source {
  /** Resolves once, with how it ended. */
  readonly end: Promise<AttemptEnd>
  readonly #call: Call
  readonly #target: Target
  readonly #deadlineMs: number
  readonly #resolve: (end: AttemptEnd) => void
  readonly #success: WholeAnswer | StreamAnswer
  #sink: Sink
  #exchange: Exchange | undefined
  #finished = false

  constructor(call: Call, target: Target, nowMs: number) {
    this.#call = call
    this.#target = target
    this.#deadlineMs = nowMs + target.channel.timeouts.totalMs
    const { promise, resolve } = Promise.withResolvers<AttemptEnd>()
    this.end = promise
    this.#resolve = resolve
    this.#success = call.request.stream
      ? new StreamAnswer(call, target, this)
      : new WholeAnswer(call, target, this)
    this.#sink = this.#success
  }

  /** To be told as soon as the request is on its way. */
  sent(exchange: Exchange): void {
    this.#exchange = exchange
  }

  /** The caller went away. */
  left(): void {
    this.#success.left()
  }

  /** Once a second. */
  tick(nowMs: number): void {
    if (nowMs < this.#deadlineMs) return this.#sink.tick(nowMs)
    this.cancel()
    this.#sink.failed(unanswered('total time-out'))
  }

  started(status: number, headers: IncomingHttpHeaders): void {
    const type = headers['content-type'] ?? ''
    if (status < 200 || status > 299 || status === 204) {
      this.#sink = new RefusedAnswer(
        this,
        this.#success,
        this.#target.channel,
        status,
        headers['retry-after'],
      )
    } else if (
      /^text\/event-stream\b/i.test(type) === this.#call.request.stream &&
      !/^text\/html\b/i.test(type)
    ) {
      this.#success.begin(type)
    } else {
      this.cancel()
      this.#success.failed(unanswered('unexpected content type'))
    }
  }

  received(chunk: Buffer): void {
    this.#sink.received(chunk)
  }

  ended(): void {
    this.#sink.ended()
  }

  failed(error: Error): void {
    this.#sink.failed(unanswered((error as NodeJS.ErrnoException).code ?? error.name))
  }

  pause(): void {
    this.#exchange?.pause()
  }

  resume(): void {
    this.#exchange?.resume()
  }

  cancel(): void {
    this.#exchange?.cancel()
  }

  finish(end: AttemptEnd): void {
    if (this.#finished) return
    this.#finished = true
    this.#resolve(end)
  }
}
