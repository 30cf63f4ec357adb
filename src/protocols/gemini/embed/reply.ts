import { promptTokens, type Usage } from '../../../domain/usage.ts'
import { asRecord } from '../../json/record.ts'
import { isError, type ReplyFacts } from '../../reply-facts.ts'
import type { Vectors } from '../../texts-to-embed.ts'
import { vectorSpans, withoutVectors } from '../../vector-spans.ts'
import { embeddedUsage } from '../usage.ts'
import type { EmbedMethod } from './request.ts'

/** Response of an upstream, and its vectors. */
export interface EmbedReply {
  readonly facts: ReplyFacts
  /** Undefined where the upstream told none. */
  readonly usage: Usage | undefined
  readonly vectors: Vectors
}

/**
 * Reads a response of either method; never throws. Valid is one with vectors. Usage is told by newer models
 * alone.
 */
export function readEmbedReply(bytes: Buffer): EmbedReply {
  const spans = vectorSpans(bytes, 'values').filter(({ form }) => form === 'numbers')
  const reply = withoutVectors(bytes, spans)
  const error = reply !== undefined && isError(reply['error'])
  const valid = reply !== undefined && !error && spans.length > 0
  const usage = valid ? embeddedUsage(asRecord(reply['usageMetadata'])) : undefined
  return {
    facts: { valid, error, usage, text: () => '' },
    usage,
    vectors: spans.map(({ start, end }) => bytes.toString('latin1', start, end)),
  }
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
