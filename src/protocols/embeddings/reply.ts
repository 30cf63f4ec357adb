import type { ReplyFacts } from '../reply-facts.ts'
import { VectorReader } from '../vector-reader.ts'
import { embeddingsFacts } from './facts.ts'
import type { VectorForm } from './request.ts'
import { inForm } from './vectors.ts'

/** A list that may have vectors in it. */
const BEGUN = /"data"\s*:\s*\[\s*\{/

/**
 * A response, read while it comes. Vectors in another form than the client asked for are written in that
 * form: its library would take numbers for base64, or the reverse. All other bytes stay as they came. No more
 * than one vector is held: a response can be a hundred megabytes long.
 */
export class EmbeddingsReply {
  readonly #reader: VectorReader
  readonly #pieces: Buffer[] = []

  constructor(form: VectorForm) {
    this.#reader = new VectorReader('embedding', {
      onVector: (vector) => this.#pieces.push(inForm(vector, form)),
      onOther: (bytes) => this.#pieces.push(bytes),
    })
  }

  /** Whether it looks like a list of vectors so far. */
  get hasBegun(): boolean {
    return this.#reader.count > 0 || BEGUN.test(this.outline)
  }

  /** The response so far, without its vectors. */
  get outline(): string {
    return this.#reader.outline ?? ''
  }

  /** Facts of the response, once it has ended. */
  get facts(): ReplyFacts {
    return embeddingsFacts(this.outline)
  }

  /** The bytes for the client that this chunk completes. */
  push(chunk: Buffer): Buffer {
    this.#reader.push(chunk)
    return this.#take()
  }

  /** Ends the response: the bytes that were still held. */
  end(): Buffer {
    this.#reader.end()
    return this.#take()
  }

  #take(): Buffer {
    const [only] = this.#pieces
    const bytes = only && this.#pieces.length === 1 ? only : Buffer.concat(this.#pieces)
    this.#pieces.length = 0
    return bytes
  }
}
