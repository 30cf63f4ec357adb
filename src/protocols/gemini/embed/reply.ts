import { promptTokens, type Usage } from '../../../domain/usage.ts'
import { asRecord, parseRecord } from '../../json/record.ts'
import { isError, type ReplyFacts } from '../../reply-facts.ts'
import type { Vectors } from '../../texts-to-embed.ts'
import { type RawVector, VectorReader } from '../../vector-reader.ts'
import { embeddedUsage } from '../usage.ts'
import type { EmbedMethod } from './request.ts'

/** A response of either method, read while it comes. */
export class EmbedReply {
  readonly #reader: VectorReader

  /** `onVector` gets the vectors in their order. */
  constructor(onVector: (vector: RawVector) => void) {
    this.#reader = new VectorReader('values', { onVector, onOther: () => {} })
  }

  /** Number of vectors so far. */
  get count(): number {
    return this.#reader.count
  }

  /** The response so far, without its vectors. */
  get outline(): string {
    return this.#reader.outline ?? ''
  }

  push(chunk: Buffer): void {
    this.#reader.push(chunk)
  }

  /** Ends the response. Valid is one with vectors; usage is told by newer models alone. */
  end(): ReplyFacts {
    this.#reader.end()
    const reply = parseRecord(this.outline)
    const error = reply !== undefined && isError(reply['error'])
    const valid = reply !== undefined && !error && this.count > 0
    const usage = valid ? embeddedUsage(asRecord(reply['usageMetadata'])) : undefined
    return { valid, error, usage, text: () => '' }
  }
}

/** Facts of a whole response; never throws. */
export function embedFacts(bytes: Buffer): ReplyFacts {
  const reply = new EmbedReply(() => {})
  reply.push(bytes)
  return reply.end()
}

/** Writes the response of a method. */
export function encodeEmbedReply(vectors: Vectors, method: EmbedMethod, charged: Usage): Buffer {
  const written = vectors.map((vector) => `{"values":${vector}}`)
  const tokens = promptTokens(charged)
  const usage = JSON.stringify({ promptTokenCount: tokens, totalTokenCount: tokens })
  const embedded =
    method === 'embedContent' ? `"embedding":${written[0] ?? '{}'}` : `"embeddings":[${written.join(',')}]`
  return Buffer.from(`{${embedded},"usageMetadata":${usage}}`)
}
