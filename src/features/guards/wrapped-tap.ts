import type { TapPushResult } from '@sluice/wire/sse/stream-tap'
import type { ErrorContent } from '@sluice/wire/upstream-error'
import type { Usage } from '@sluice/wire/usage'
import type { Call } from '../../call/call.ts'
import type { Tap } from '../../call/dialects/dialect.ts'
import type { AttemptTarget } from '../../call/request-stages.ts'

/**
 * A tap (reader of a stream on its way to the client) around another tap. It changes what is sent; facts
 * about the stream come from the inner tap.
 */
export abstract class WrappedTap implements Tap {
  protected readonly inner: Tap

  constructor(inner: Tap) {
    this.inner = inner
  }

  get usage(): Tap['usage'] {
    return this.inner.usage
  }

  get served(): Tap['served'] {
    return this.inner.served
  }

  get diagnosis(): Tap['diagnosis'] {
    return this.inner.diagnosis
  }

  get tools(): Tap['tools'] {
    return this.inner.tools
  }

  get error(): Tap['error'] {
    return this.inner.error
  }

  get errorFrame(): Tap['errorFrame'] {
    return this.inner.errorFrame
  }

  get endsWithError(): boolean {
    return this.inner.endsWithError
  }

  get sentEvents(): number {
    return this.inner.sentEvents
  }

  get sawEvent(): boolean {
    return this.inner.sawEvent
  }

  /** Whether only a part of an event was sent. Always false, because this tap sends each event as a whole. */
  get isMidEvent(): boolean {
    return false
  }

  get emittedBytes(): number {
    return this.inner.emittedBytes
  }

  get contentFrames(): number {
    return this.inner.contentFrames
  }

  get text(): string {
    return this.inner.text
  }

  get arrived(): Tap['arrived'] {
    return this.inner.arrived
  }

  get continueInBackground(): Tap['continueInBackground'] {
    return this.inner.continueInBackground
  }

  get note(): Tap['note'] {
    return this.inner.note
  }

  /** Whether a guard has ended the stream. */
  abstract get isBlocked(): boolean

  abstract push(chunk: Buffer): TapPushResult
  abstract end(): ReturnType<Tap['end']>
  abstract finalBytes(charged: Usage): Buffer
  abstract failureFrame(error: ErrorContent): Buffer

  clientLeft(): void {
    this.inner.clientLeft?.()
  }

  keepAliveFrame(): Buffer | undefined {
    return this.inner.keepAliveFrame()
  }

  async keep(
    target: AttemptTarget,
    call: Call,
    charged: Promise<Usage>,
    form: (bytes: Buffer) => Buffer = (bytes) => bytes,
  ): Promise<void> {
    // A blocked answer is not stored, so that it cannot be read later.
    if (!this.isBlocked) await this.inner.keep?.(target, call, charged, (bytes) => form(this.kept(bytes)))
  }

  /** The last bytes of the inner tap, as they are stored. */
  protected abstract kept(bytes: Buffer): Buffer

  provenance(target: AttemptTarget, call: Call, charged: Usage): ReturnType<NonNullable<Tap['provenance']>> {
    return this.inner.provenance?.(target, call, charged)
  }

  release(): void {
    this.inner.release()
  }
}
