import type { Channel } from '../../../domain/channel.ts'
import type { Dropped } from '../../../protocols/codec.ts'
import { encodeTexts, readVectors } from '../../../protocols/embeddings/index.ts'
import {
  decodeEmbedRequest,
  embeddedText,
  embedFacts,
  EmbedReplyWriter,
  type EmbedMethod,
  encodeEmbedReply,
  gateEmbedRequest,
  readEmbedRequest,
} from '../../../protocols/gemini/embed/index.ts'
import { methodPath } from '../../../protocols/gemini/index.ts'
import type { Dialect, Prepared, RelayedRequest } from '../dialect.ts'
import { askedForVectors } from '../embeddings/asked-for-vectors.ts'
import { embedUpstream, type EmbedUpstream } from '../embeddings/embed-upstream.ts'
import { SERVING } from '../embeddings/serving.ts'
import { unstreamed } from '../unstreamed.ts'

/** Embeddings of the Gemini API: bytes to channels that speak it, converted to those of others. */
export function embedDialect(asked: string, method: EmbedMethod): Dialect {
  return {
    name: 'gemini',
    endpoint: 'embeddings',
    servedBy: SERVING,
    promptText: embeddedText,
    read(scan) {
      const { promptBound, hasMedia } = readEmbedRequest(scan, method, asked)
      const forModel = (model: string): RelayedRequest => {
        const upstreamModel = (channel: Channel): string => channel.modelMapping.get(model) ?? model
        const askedInForm = (upstream: EmbedUpstream): Prepared => {
          const dropped: Dropped = new Set()
          const texts = decodeEmbedRequest(scan, method, dropped)
          return askedForVectors(upstream, texts, dropped, () => new EmbedReplyWriter(method))
        }
        const native = (channel: Channel): Prepared => ({
          protocol: 'gemini',
          path: methodPath(upstreamModel(channel), method),
          headers: [],
          body: gateEmbedRequest(scan, upstreamModel(channel)),
          upstreamModel: upstreamModel(channel),
          dropped: [],
          tap: unstreamed,
          reply: (bytes) => ({ facts: embedFacts(bytes), body: () => bytes }),
        })
        const converted = (channel: Channel): Prepared => {
          const dropped: Dropped = new Set()
          const texts = decodeEmbedRequest(scan, method, dropped)
          return {
            protocol: 'chat',
            path: '/embeddings',
            headers: [],
            body: encodeTexts(texts, upstreamModel(channel), dropped),
            upstreamModel: upstreamModel(channel),
            dropped: [...dropped],
            tap: unstreamed,
            reply(bytes) {
              const { facts, vectors } = readVectors(bytes)
              return {
                facts: { ...facts, valid: facts.valid && vectors.length === texts.texts.length },
                body: (charged) => encodeEmbedReply(vectors, method, charged),
              }
            },
          }
        }
        return {
          model,
          stream: false,
          maxTokens: 0,
          promptBound,
          webSearch: false,
          forModel,
          ...(hasMedia && { measuredBounds: { hasMedia } }),
          forChannels: (channels) =>
            channels.map((channel) => ({
              channel,
              outputMaximum: 0,
              choices: 1,
              prepare() {
                if (!channel.provider && channel.protocols.includes('gemini')) return native(channel)
                const upstream = embedUpstream(channel, model)
                return upstream ? askedInForm(upstream) : converted(channel)
              },
            })),
        }
      }
      return forModel(asked)
    },
  }
}
