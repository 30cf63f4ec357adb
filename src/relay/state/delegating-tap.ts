import type { ArrivedMedia } from '@sluice/wire/received-media'
import type { Usage } from '@sluice/wire/usage'
import type { ReportedUsage } from '@sluice/wire/reported-usage'
import type { StreamError, TapEnd, TapStep } from '@sluice/wire/sse/stream-tap'
import type { SeenTools } from '@sluice/wire/tool-use'
import type { ErrorParts } from '@sluice/wire/upstream-error'
import type { Tap } from '../dialects/dialect.ts'

/** A tap around another one; subclasses override what they change. */
export abstract class DelegatingTap<Inner extends Tap> implements Tap {
  protected readonly inner: Inner

  constructor(inner: Inner) {
    this.inner = inner
  }

  get tools(): SeenTools {
    return this.inner.tools
  }

  get usage(): ReportedUsage | undefined {
    return this.inner.usage
  }

  get error(): StreamError | undefined {
    return this.inner.error
  }

  get errorFrame(): Buffer | undefined {
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

  get isMidEvent(): boolean {
    return this.inner.isMidEvent
  }

  get emittedBytes(): number {
    return this.inner.emittedBytes
  }

  get contentFrames(): number {
    return this.inner.contentFrames
  }

  get arrived(): ArrivedMedia {
    return this.inner.arrived
  }

  get text(): string {
    return this.inner.text
  }

  push(chunk: Buffer): TapStep {
    return this.inner.push(chunk)
  }

  end(): Pick<TapEnd, 'complete'> {
    return this.inner.end()
  }

  keepAliveFrame(): Buffer | undefined {
    return this.inner.keepAliveFrame()
  }

  finalBytes(charged: Usage): Buffer {
    return this.inner.finalBytes(charged)
  }

  failureFrame(error: ErrorParts): Buffer {
    return this.inner.failureFrame(error)
  }

  release(): void {
    this.inner.release()
  }
}
