import type { Usage } from '../../../domain/usage.ts'
import { JsonArray } from '../../../protocols/gemini/index.ts'
import type { TapStep } from '../../../protocols/sse/stream-tap.ts'
import type { ErrorParts } from '../../../protocols/upstream-error.ts'
import { DelegatingTap } from '../../state/delegating-tap.ts'
import type { Tap } from '../dialect.ts'

/** Tap of a native stream of events for a client that reads one JSON array. */
export class ArrayTap extends DelegatingTap<Tap> {
  readonly #array = new JsonArray()

  /** The upstream's frame is no element: its error is told in `failureFrame`. */
  override get errorFrame(): undefined {
    return undefined
  }

  override keepAliveFrame(): undefined {
    return undefined
  }

  override push(chunk: Buffer): TapStep {
    const { forward, terminal } = this.inner.push(chunk)
    const elements = forward && this.#array.push(forward)
    return { forward: elements && elements.length > 0 ? elements : undefined, terminal }
  }

  override finalBytes(charged: Usage): Buffer {
    return this.#last(this.inner.finalBytes(charged))
  }

  override failureFrame(error: ErrorParts): Buffer {
    return this.#last(this.inner.failureFrame(error))
  }

  #last(frames: Buffer): Buffer {
    return Buffer.concat([this.#array.push(frames), this.#array.end()])
  }
}
