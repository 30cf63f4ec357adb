import type { Usage } from '@sluice/wire/usage'
import { type IdReplacer, ResponsesTap } from '@sluice/wire/responses'
import type { EventMemory } from '@sluice/wire/sse/frame-splitter'
import type { TapEndResult, TapPushResult } from '@sluice/wire/sse/stream-tap'
import type { ErrorContent } from '@sluice/wire/upstream-error'

/**
 * Reads a stream of the Responses API on its way to the client, and replaces the upstream's ids with those
 * that the gateway issued.
 */
export abstract class RenamingTap extends ResponsesTap {
  readonly #ids: IdReplacer
  #isErrorRenamed = false

  constructor(memory: EventMemory, ids: IdReplacer) {
    super(memory)
    this.#ids = ids
  }

  /** Reads the upstream's id from the stream. Called before any bytes are forwarded. */
  protected abstract learn(): void

  override push(chunk: Buffer): TapPushResult {
    const { forward, terminal } = super.push(chunk)
    this.learn()
    this.#renameError()
    const renamed = forward && this.#ids.push(forward)
    return { forward: renamed && renamed.length > 0 ? renamed : undefined, terminal }
  }

  override end(): TapEndResult {
    const end = super.end()
    this.#renameError()
    return end
  }

  override keepAliveFrame(isNumbered?: boolean): Buffer | undefined {
    const frame = super.keepAliveFrame(isNumbered)
    return frame && this.#ids.whole(frame)
  }

  override finalBytes(charged: Usage): Buffer {
    this.learn()
    const ending = this.#ids.push(super.finalBytes(charged))
    return Buffer.concat([ending, this.#ids.rest()])
  }

  override failureFrame(error: ErrorContent): Buffer {
    this.learn()
    return this.#ids.whole(super.failureFrame(error))
  }

  #renameError(): void {
    const { error, errorFrame } = this
    if (!error || this.#isErrorRenamed) return
    this.#isErrorRenamed = true
    this.error = { ...error, data: this.#ids.inProse(Buffer.from(error.data)).toString() }
    if (errorFrame) this.errorFrame = this.#ids.inProse(errorFrame)
  }
}
