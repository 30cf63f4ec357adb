import type { Channel } from '../domain/channel.ts'
import { failureOfStatus } from './failure.ts'
import type { Sink, Source } from './response-handler.ts'

/** Of an upstream's error body, what is read. */
const LIMIT = 64 * 1024

/** Takes in an answer that is no success: its body tells why. */
export class ErrorResponse implements Sink {
  readonly #source: Source
  readonly #wanted: Sink
  readonly #channel: Channel
  readonly #status: number
  readonly #retryAfter: string | undefined
  readonly #chunks: Buffer[] = []
  #length = 0

  /** `wanted` is what a success would have been taken in by: it knows what a failure means for the caller. */
  constructor(
    source: Source,
    wanted: Sink,
    channel: Channel,
    status: number,
    retryAfter: string | undefined,
  ) {
    this.#source = source
    this.#wanted = wanted
    this.#channel = channel
    this.#status = status
    this.#retryAfter = retryAfter
  }

  received(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#length += chunk.length
    if (this.#length < LIMIT) return
    this.#source.cancel()
    this.ended()
  }

  ended(): void {
    const body = Buffer.concat(this.#chunks).subarray(0, LIMIT)
    this.#wanted.failed(failureOfStatus(this.#channel, this.#status, body, this.#retryAfter))
  }

  failed(): void {
    this.ended()
  }
}
