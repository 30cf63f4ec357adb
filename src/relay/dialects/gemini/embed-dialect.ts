import type { Channel } from '../../../domain/records/channel.ts'
import type { Dropped } from '../../../protocols/codec.ts'
import { reroutingNames } from '../../../protocols/edited-request.ts'
import { textForm } from '../../../protocols/embeddings/index.ts'
import {
  decodeEmbedRequest,
  EmbedReply,
  EmbedReplyWriter,
  type EmbedMethod,
  gateEmbedRequest,
  readEmbedRequest,
} from '../../../protocols/gemini/embed/index.ts'
import { embedNames, GEMINI_EMBED_PROMPT, methodPath } from '../../../protocols/gemini/index.ts'
import type { Dialect, Prepared, RelayedRequest } from '../dialect.ts'
import { askedForVectors } from '../embeddings/asked-for-vectors.ts'
import { embedUpstream, type EmbedUpstream } from '../../../upstreams/embed-upstream.ts'
import { EmbeddingsPassage } from '../embeddings/embeddings-passage.ts'
import { embeddingsResponses } from '../embeddings/responses.ts'
import { SERVING } from '../embeddings/serving.ts'
import { unstreamed } from '../unstreamed.ts'

/** Embeddings of the Gemini API: bytes to channels that speak it, converted to those of others. */
export function embedDialect(asked: string, method: EmbedMethod): Dialect {
  return {
    name: 'gemini',
    endpoint: 'embeddings',
    names: embedNames,
    servedBy: SERVING,
    read(scan) {
      const { promptBound, hasMedia } = readEmbedRequest(scan, method, asked)
      const forModel = (model: string): RelayedRequest => {
        const upstreamModel = (channel: Channel): string => channel.model_mapping.get(model) ?? model
        const askedInForm = (upstream: EmbedUpstream): Prepared => {
          const dropped: Dropped = new Set(reroutingNames(scan))
          const texts = decodeEmbedRequest(scan, method, dropped)
          return askedForVectors(upstream, texts, dropped, () => new EmbedReplyWriter(method))
        }
        const native = (channel: Channel, passThrough: boolean): Prepared => ({
          protocol: 'gemini',
          path: methodPath(upstreamModel(channel), method),
          headers: [],
          ...gateEmbedRequest(scan, upstreamModel(channel), channel, passThrough),
          prompt: GEMINI_EMBED_PROMPT,
          upstreamModel: upstreamModel(channel),
          passed: embeddingsResponses(() => new EmbeddingsPassage(new EmbedReply())),
          tap: unstreamed,
          reply: unstreamed,
        })
        // Asked as by the client of chat's endpoint.
        const inTexts = (channel: Channel): EmbedUpstream => ({
          form: textForm,
          protocol: 'chat',
          path: '/embeddings',
          model: upstreamModel(channel),
        })
        return {
          model,
          stream: false,
          maxTokens: 0,
          promptBound,
          forModel,
          ...(hasMedia && { measuredBounds: { hasMedia } }),
          forChannels: (channels) =>
            channels.map((channel) => ({
              channel,
              outputMaximum: 0,
              choices: 1,
              prepare(passThrough) {
                if (channel.provider === 'generic' && channel.protocol.includes('gemini'))
                  return native(channel, passThrough)
                return askedInForm(embedUpstream(channel, model) ?? inTexts(channel))
              },
            })),
        }
      }
      return forModel(asked)
    },
  }
}
