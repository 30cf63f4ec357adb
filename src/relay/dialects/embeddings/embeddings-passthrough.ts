import type { ReplyFacts } from '@sluice/wire/reply-facts'
import type { StreamError } from '@sluice/wire/sse/stream-tap'
import type { Call } from '../../call.ts'
import type { Measure, PassedBytes, Passthrough } from '../passthrough.ts'
import { HeldStart } from './hold-until-complete.ts'
import { measureEmbeddings } from './responses.ts'

/** A response with vectors, read while it streams. */
interface VectorsReply {
  /** Whether the response looks like one with vectors so far. */
  readonly hasBegun: boolean
  /** The response so far, without its vectors. */
  readonly outline: string
  /** Facts of the response after it has ended. */
  readonly facts: ReplyFacts | undefined
  /** Returns the bytes for the client that this chunk completes. */
  push(chunk: Buffer): Buffer
  /** Ends the response. Returns the bytes that were still held. */
  end(): Buffer
}

/** A response with vectors in the client's own dialect. */
export class EmbeddingsPassthrough implements Passthrough {
  readonly #reply: VectorsReply
  readonly #held = new HeldStart()
  #facts: ReplyFacts | undefined
  #hasBegun = false
  #last: Buffer | undefined

  constructor(reply: VectorsReply) {
    this.#reply = reply
  }

  get hasBegun(): boolean {
    return this.#hasBegun
  }

  get hasContent(): boolean {
    return this.#hasBegun
  }

  get error(): StreamError | undefined {
    return this.#facts?.error ? { data: this.#reply.outline, afterContent: false } : undefined
  }

  push(chunk: Buffer): PassedBytes {
    const forward = this.#held.push(this.#reply.push(chunk))
    this.#hasBegun ||= this.#held.isLarge && this.#reply.hasBegun
    return { forward, isOver: false }
  }

  end(): boolean {
    this.#last = this.#reply.end()
    this.#facts = this.#reply.facts
    return this.#facts?.valid === true
  }

  rest(): Buffer {
    return Buffer.concat([this.#held.rest(), ...(this.#last ? [this.#last] : [])])
  }

  measure(call: Call, isComplete: boolean): Promise<Measure> {
    return measureEmbeddings(call, isComplete ? this.#facts?.usage : undefined)
  }
}
