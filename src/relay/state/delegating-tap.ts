import type { ArrivedMedia } from '../../protocols/received-media.ts'
import type { Usage } from '../../domain/usage.ts'
import type { ReportedUsage } from '../../protocols/reported-usage.ts'
import type { StreamError, TapEnd, TapStep } from '../../protocols/sse/stream-tap.ts'
import type { SeenTools } from '../../protocols/tool-tally.ts'
import type { ErrorParts } from '../../protocols/upstream-error.ts'
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
