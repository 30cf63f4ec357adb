import type { RenamedIds, ResponsesTap } from '@sluice/wire/responses'
import type { Usage } from '@sluice/wire/usage'
import type { StreamError, TapStep } from '@sluice/wire/sse/stream-tap'
import type { ErrorParts } from '@sluice/wire/upstream-error'
import { DelegatingTap } from './delegating-tap.ts'

/** Tap of a native stream that replaces the upstream's ids with those that the gateway issued. */
export abstract class RenamingTap extends DelegatingTap<ResponsesTap> {
  readonly #ids: RenamedIds

  constructor(inner: ResponsesTap, ids: RenamedIds) {
    super(inner)
    this.#ids = ids
  }

  /** Takes the upstream's id; called before any bytes are forwarded. */
  protected abstract learn(): void

  override get error(): StreamError | undefined {
    const { error } = this.inner
    return error && { ...error, data: this.#ids.inProse(Buffer.from(error.data)).toString() }
  }

  override get errorFrame(): Buffer | undefined {
    const frame = this.inner.errorFrame
    return frame && this.#ids.inProse(frame)
  }

  override push(chunk: Buffer): TapStep {
    const { forward, terminal } = this.inner.push(chunk)
    this.learn()
    const renamed = forward && this.#ids.push(forward)
    return { forward: renamed && renamed.length > 0 ? renamed : undefined, terminal }
  }

  override keepAliveFrame(): Buffer | undefined {
    const frame = this.inner.keepAliveFrame()
    return frame && this.#ids.whole(frame)
  }

  override finalBytes(charged: Usage): Buffer {
    this.learn()
    const ending = this.#ids.push(this.inner.finalBytes(charged))
    return Buffer.concat([ending, this.#ids.rest()])
  }

  override failureFrame(error: ErrorParts): Buffer {
    this.learn()
    return this.#ids.whole(this.inner.failureFrame(error))
  }
}
