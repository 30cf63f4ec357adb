import type { Usage } from './usage.ts'
import type { StreamEncoder } from './codec.ts'
import type { CopyableText, FrameWriter } from './frame-writer.ts'
import type { Reply, ReplyEvent } from './reply.ts'
import type { ErrorContent } from './upstream-error.ts'

/**
 * Removes the signatures of texts, because models do not need them. Each would become an empty thought at the
 * end of the reply, and clients that take the last part as the answer would show nothing.
 */
export function withoutTextSignatures(reply: Reply): Reply {
  const parts = reply.parts.filter((part) => part.kind !== 'thinking' || part.proof?.signs !== 'text')
  return parts.length === reply.parts.length ? reply : { ...reply, parts }
}

/** Encoder that removes the signatures of texts from a stream. */
export class TextSignatureRemover implements StreamEncoder {
  readonly #inner: StreamEncoder
  /** A thought that has begun and is held back. The next event shows whether it contains only a signature. */
  #begun: (ReplyEvent & { readonly kind: 'part-start' }) | undefined
  #left: number | undefined

  constructor(inner: StreamEncoder) {
    this.#inner = inner
  }

  push(events: readonly ReplyEvent[]): string {
    return this.#inner.push(events.flatMap((event) => this.#taken(event)))
  }

  copy(event: CopyableText, out: FrameWriter): boolean {
    const begun = this.#begun
    if (begun) {
      this.#begun = undefined
      out.text(this.#inner.push([begun]))
    }
    return this.#inner.copy(event, out)
  }

  keepAliveFrame(model: string, isNumbered?: boolean): string {
    return this.#inner.keepAliveFrame(model, isNumbered)
  }

  finalFrames(charged?: Usage): string {
    return this.#inner.finalFrames(charged)
  }

  failureFrame(error: ErrorContent): string {
    return this.#inner.failureFrame(error)
  }

  #taken(event: ReplyEvent): ReplyEvent[] {
    const begun = this.#begun
    this.#begun = undefined
    if (event.kind === 'proof' && event.index === begun?.index && event.proof.signs === 'text') {
      this.#left = begun.index
      return []
    }
    if (event.kind === 'part-end' && event.index === this.#left) {
      this.#left = undefined
      return []
    }
    const before = begun ? [begun] : []
    if (event.kind !== 'part-start' || event.part.kind !== 'thinking') return [...before, event]
    this.#begun = event
    return before
  }
}
