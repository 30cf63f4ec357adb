import type { Target } from './call.ts'
import { type Failure, failureOfStatus } from './failure.ts'

/** Bytes of an upstream's error body that are read. */
const MAX_BYTES = 64 * 1024

/** A response that is no success: its body says why. */
export class ErrorResponse {
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
