import { promptTokens, type Usage } from '../../../domain/usage.ts'
import { asRecord } from '../../json/record.ts'
import { NamedVectors } from '../../named-vectors.ts'
import type { ReplyFacts } from '../../reply-facts.ts'
import type { Vectors, VectorsReading, VectorsWriting } from '../../texts-to-embed.ts'
import type { RawVector } from '../../vector-reader.ts'
import { embeddedUsage } from '../usage.ts'
import type { EmbedMethod } from './request.ts'

/** Begins a response of either method; usage is told by newer models alone. */
export function embedReading(onVector: (vector: RawVector) => void): VectorsReading {
  return new NamedVectors('values', (reply) => embeddedUsage(asRecord(reply['usageMetadata'])), onVector)
}

/** Facts of a whole response; never throws. */
export function embedFacts(bytes: Buffer): ReplyFacts {
  const reply = embedReading(() => {})
  reply.push(bytes)
  return reply.end()
}

/** Writes the response of a method piece by piece. */
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

/** Writes the response of a method with these vectors, at least one. */
export function encodeEmbedReply(vectors: Vectors, method: EmbedMethod, charged: Usage): Buffer {
  const writer = new EmbedReplyWriter(method)
  const written = vectors.map((vector) => writer.write({ text: Buffer.from(vector) }))
  return Buffer.concat([...written, writer.end(charged)])
}
