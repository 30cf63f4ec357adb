import { promptTokens, type Usage } from '../../../domain/usage.ts'
import { asRecord } from '../../json/record.ts'
import { isError } from '../../reply-facts.ts'
import { noVectors, type Vectors, type VectorsReply, vectorsReply } from '../../texts-to-embed.ts'
import { vectorSpans, withoutVectors } from '../../vector-spans.ts'
import { embeddedUsage } from '../usage.ts'
import type { EmbedMethod } from './request.ts'

/**
 * Reads a response of either method; never throws. Valid is one with vectors. Usage is told by newer models
 * alone.
 */
export function readEmbedReply(bytes: Buffer): VectorsReply {
  const spans = vectorSpans(bytes, 'values').filter(({ form }) => form === 'numbers')
  const reply = withoutVectors(bytes, spans)
  const error = reply !== undefined && isError(reply['error'])
  if (!reply || error || spans.length === 0) return noVectors(error)
  return vectorsReply(
    spans.map(({ start, end }) => bytes.toString('latin1', start, end)),
    embeddedUsage(asRecord(reply['usageMetadata'])),
  )
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
