import type { TapPushResult } from '@sluice/wire/sse/stream-tap'
import type { ErrorContent } from '@sluice/wire/upstream-error'
import type { Usage } from '@sluice/wire/usage'
import type { LastingResponse, Tap } from '../../call/dialects/answer-reader.ts'

/** What a tap around another hands on, optional members too. */
type HandedOn = { readonly [Name in Exclude<keyof Tap, 'check' | 'takeLastTexts'>]: Tap[Name] }

/**
 * A tap (reader of a stream on its way to the client) around another tap. It changes what is sent; facts
 * about the stream come from the inner tap.
 */
export abstract class WrappedTap implements HandedOn {
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

  get names(): Tap['names'] {
    return this.inner.names
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

  keepAliveFrame(isNumbered?: boolean): Buffer | undefined {
    return this.inner.keepAliveFrame(isNumbered)
  }

  get lasting(): LastingResponse | undefined {
    const { lasting } = this.inner
    if (!lasting?.keep) return lasting
    return {
      ...lasting,
      // A blocked answer is not stored, so that it cannot be read later.
      keep: async (origin, charged, form = (bytes) => bytes) => {
        if (!this.isBlocked) await lasting.keep?.(origin, charged, (bytes) => form(this.kept(bytes)))
      },
    }
  }

  /** The last bytes of the inner tap, as they are stored. */
  protected abstract kept(bytes: Buffer): Buffer

  release(): void {
    this.inner.release()
  }
}
