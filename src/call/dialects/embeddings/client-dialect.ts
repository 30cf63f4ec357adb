import type { DroppedFields } from '@sluice/wire/codec'
import {
  requireTextInputs,
  decodeTexts,
  EMBEDDINGS_LIMITS,
  EMBEDDINGS_PROMPT_RULES,
  embeddingsFieldNames,
  EmbeddingsReply,
  readEmbeddingsRequest,
  VectorsWriter,
  EMBEDDINGS_REQUEST,
} from '@sluice/wire/embeddings'
import { withMappedModel } from '@sluice/wire/edit-request'
import { PROTOCOL_NAMES } from '@sluice/wire/protocols'
import { unstreamedStorageRules } from '../answer-storage-rules.ts'
import { UPSTREAM_PROTOCOLS } from '../../../domain/protocols.ts'
import type { Channel } from '../../../domain/records/channel.ts'
import {
  embedUpstream,
  type EmbedUpstream,
  speaksOpenAiEmbeddings,
} from '../../../upstreams/embed-upstream.ts'
import type { AttemptRequest, ParsedRequest } from '../../request-stages.ts'
import type { Dialect } from '../dialect.ts'
import { throwNoStreams } from '../answer-reader.ts'
import { EmbeddingsPassthrough, embeddingsResponses } from './embeddings-passthrough.ts'
import { vectorRequest } from './vector-requests.ts'

/** Protocols of the channels that serve embeddings. */
export const EMBEDDINGS_PROTOCOLS = PROTOCOL_NAMES.filter((name) =>
  UPSTREAM_PROTOCOLS[name].serves.includes('embeddings'),
)

/**
 * Dialect of embeddings. Requests are passed through to channels that speak chat, and converted for others.
 * Vectors are returned in the requested format.
 */
export const embeddingsDialect: Dialect = {
  name: 'chat',
  endpoint: 'embeddings',
  names: embeddingsFieldNames,
  shape: EMBEDDINGS_REQUEST,
  keeping: unstreamedStorageRules('embeddings'),
  servedBy: EMBEDDINGS_PROTOCOLS,
  scanLimits: EMBEDDINGS_LIMITS,
  read(scan) {
    const read = readEmbeddingsRequest(scan)
    const { promptBound, inputBounds, form } = read
    const forModel = (model: string): ParsedRequest => {
      const native = (channel: Channel, passThrough: boolean): AttemptRequest => ({
        protocol: 'chat',
        path: '/embeddings',
        headers: [],
        ...withMappedModel(scan, model, channel, passThrough),
        prompt: EMBEDDINGS_PROMPT_RULES,
        passed: embeddingsResponses('embeddings', () => new EmbeddingsPassthrough(new EmbeddingsReply(form))),
        tap: throwNoStreams,
        reply: throwNoStreams,
      })
      const converted = (upstream: EmbedUpstream): AttemptRequest => {
        const dropped: DroppedFields = new Set()
        const texts = decodeTexts(scan, dropped)
        return vectorRequest(upstream, texts, dropped, () => new VectorsWriter(form, model))
      }
      return {
        model,
        stream: false,
        maxTokens: 0,
        promptBound,
        inputBounds,
        forModel,
        channelsFor(channels) {
          // If the request must be converted for every channel, its texts are checked already when it is
          // read, so that a request that is refused does not count against limits.
          if (!channels.some(speaksOpenAiEmbeddings)) requireTextInputs(scan)
          return channels
        },
        forChannels: (channels) =>
          channels.map((channel) => ({
            channel,
            outputMaximum: 0,
            choices: 1,
            prepare(passThrough) {
              const upstream = embedUpstream(channel, model)
              return upstream ? converted(upstream) : native(channel, passThrough)
            },
          })),
      }
    }
    return forModel(read.model)
  },
}
