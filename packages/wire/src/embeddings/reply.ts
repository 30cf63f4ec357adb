import { errorInAnswer } from '../answer-error.ts'
import type { ReplyFacts } from '../reply-facts.ts'
import { VectorReader } from '../vectors.ts'
import type { VectorForm } from './request.ts'
import { convertVector } from './vectors.ts'
import { NO_USAGE, type Usage } from '../usage.ts'
import { asRecord, parseRecord } from '../json/record.ts'
import { plausibleCountAt, type UpstreamCounts, largestCount } from '../reported-usage.ts'

/** Matches the beginning of a list that may contain vectors. */
const BEGUN = /"data"\s*:\s*\[\s*\{/

/**
 * Reads a response while it streams. Vectors in another format than the client requested are converted,
 * because the client's library would misread them. All other bytes stay unchanged. At most one vector is held
 * in memory, because a response can have a hundred megabytes.
 */
export class EmbeddingsReply {
  readonly #reader: VectorReader
  readonly #pieces: Buffer[] = []

  constructor(form: VectorForm) {
    this.#reader = new VectorReader('embedding', {
      onVector: (vector) => this.#pieces.push(convertVector(vector, form)),
      onOther: (bytes) => this.#pieces.push(bytes),
    })
  }

  /** Whether the part of the response read so far looks like a list of vectors. */
  get hasBegun(): boolean {
    return this.#reader.count > 0 || BEGUN.test(this.outline)
  }

  /** The response read so far, without its vectors. */
  get outline(): string {
    return this.#reader.outline ?? ''
  }

  /** Validity, error and usage of the response. Call this when the response has ended. */
  get facts(): ReplyFacts {
    return embeddingsFacts(this.outline)
  }

  /** Reads a chunk. Returns the bytes that can be sent to the client. */
  push(chunk: Buffer): Buffer {
    this.#reader.push(chunk)
    return this.#take()
  }

  /** Ends the response. Returns the bytes that were held back. */
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

/**
 * Reads validity, error and usage of a response; never throws. `outline` is the text of the response with an
 * empty list in place of each vector. A response is valid if it has a list `data` of objects with an
 * `embedding`.
 */
export function embeddingsFacts(outline: string): ReplyFacts {
  const reply = parseRecord(outline) ?? {}
  const error = errorInAnswer(reply, Array.isArray(reply['data']))
  const valid = !error && hasVectors(reply['data'])
  const usage = valid ? readEmbeddingsUsage((key) => reply[key]) : undefined
  return { valid, error, usage, text: () => '' }
}

function hasVectors(data: unknown): boolean {
  return (
    Array.isArray(data) &&
    data.length > 0 &&
    data.every((one) => ['string', 'object'].includes(typeof asRecord(one)?.['embedding']))
  )
}

const NONE: UpstreamCounts = {}

/**
 * Reads the usage of an embeddings upstream; undefined if it reports no tokens. Output that some servers
 * report is ignored, because nothing is generated. Tokens are read from `usage` (the prompt, or only a total
 * as at Voyage), `meta.billed_units` (Cohere) or `prompt_eval_count` (Ollama). `member` returns a member of
 * the response.
 */
function readEmbeddingsUsage(member: (key: string) => unknown): Usage | undefined {
  const usage = asRecord(member('usage')) ?? NONE
  const billed = asRecord(asRecord(member('meta'))?.['billed_units']) ?? NONE
  const input =
    largestCount(usage, 'prompt_tokens', 'input_tokens') ||
    plausibleCountAt(usage, 'total_tokens') ||
    plausibleCountAt(billed, 'input_tokens') ||
    plausibleCountAt({ tokens: member('prompt_eval_count') }, 'tokens')
  return input > 0 ? { ...NO_USAGE, input } : undefined
}
