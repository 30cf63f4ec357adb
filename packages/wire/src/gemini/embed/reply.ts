import { promptTokens, type Usage } from '../../usage.ts'
import { asRecord } from '../../json/record.ts'
import { NamedVectors, type RawVector } from '../../vectors.ts'
import type { ReplyFacts } from '../../reply-facts.ts'
import type { VectorsReading, VectorsWriting } from '../../texts-to-embed.ts'
import { embeddedUsage } from '../usage.ts'
import type { EmbedMethod } from './request.ts'

/** Creates the reader of a response of either method. Only newer models report usage. */
export function vectorsReaderFor(onVector: (vector: RawVector) => void): VectorsReading {
  return new NamedVectors('values', (reply) => embeddedUsage(asRecord(reply['usageMetadata'])), onVector)
}

/** Reads a response of either method while it is forwarded unchanged. */
export class EmbedReply {
  readonly #reading = vectorsReaderFor(() => {})
  /** Facts of the response once it has ended. */
  facts: ReplyFacts | undefined

  /** Whether it has a vector. */
  get hasBegun(): boolean {
    return this.#reading.count > 0
  }

  /** The response so far, without its vectors. */
  get outline(): string {
    return this.#reading.outline
  }

  /** Returns the bytes for the client, which are the same. */
  push(chunk: Buffer): Buffer {
    this.#reading.push(chunk)
    return chunk
  }

  /** Ends the response. Nothing was held back. */
  end(): Buffer {
    this.facts = this.#reading.end()
    return NOTHING
  }
}

const NOTHING = Buffer.alloc(0)

/** Writes the response of either method piece by piece. */
export class EmbedReplyWriter implements VectorsWriting {
  readonly #isSingle: boolean
  #count = 0

  constructor(method: EmbedMethod) {
    this.#isSingle = method === 'embedContent'
  }

  write({ text }: Pick<RawVector, 'text'>): Buffer {
    const before = this.#count++ > 0 ? ',' : this.#isSingle ? '{"embedding":' : '{"embeddings":['
    return Buffer.concat([Buffer.from(`${before}{"values":`), text, Buffer.from('}')])
  }

  end(charged: Usage): Buffer {
    const tokens = promptTokens(charged)
    const usage = JSON.stringify({ promptTokenCount: tokens, totalTokenCount: tokens })
    return Buffer.from(`${this.#isSingle ? '' : ']'},"usageMetadata":${usage}}`)
  }
}
