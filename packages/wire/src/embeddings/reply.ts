import type { ReplyFacts } from '../reply-facts.ts'
import { VectorReader } from '../vectors.ts'
import { embeddingsFacts } from './facts.ts'
import type { VectorForm } from './request.ts'
import { inForm } from './vectors.ts'

/** A list that may contain vectors. */
const BEGUN = /"data"\s*:\s*\[\s*\{/

/**
 * Reads a response while it streams. Vectors in another format than the client requested are converted,
 * because its library would misread numbers as base64 or the reverse. All other bytes stay as they came. At
 * most one vector is held, because a response can have a hundred megabytes.
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

  /** Whether the response looks like a list of vectors so far. */
  get hasBegun(): boolean {
    return this.#reader.count > 0 || BEGUN.test(this.outline)
  }

  /** The response so far, without its vectors. */
  get outline(): string {
    return this.#reader.outline ?? ''
  }

  /** Facts of the response after it has ended. */
  get facts(): ReplyFacts {
    return embeddingsFacts(this.outline)
  }

  /** Returns the bytes for the client that this chunk completes. */
  push(chunk: Buffer): Buffer {
    this.#reader.push(chunk)
    return this.#take()
  }

  /** Ends the response. Returns the bytes that were still held. */
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
