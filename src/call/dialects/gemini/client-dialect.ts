import { geminiStorageRules, unstreamedStorageRules } from '../answer-storage-rules.ts'
import type { Channel } from '../../../domain/records/channel.ts'
import type { Model } from '../../../domain/records/model.ts'
import type { Usage } from '@sluice/wire/usage'
import type { DroppedFields } from '@sluice/wire/codec'
import { reroutingMemberNames } from '@sluice/wire/edit-request'
import { openAiEmbeddingsApi } from '@sluice/wire/embeddings'
import {
  decodeEmbedRequest,
  type EmbedMethod,
  EmbedReply,
  EmbedReplyWriter,
  adaptEmbedRequest,
  readEmbedRequest,
  GEMINI_EMBED_REQUEST,
} from '@sluice/wire/gemini/embed'
import {
  GEMINI_COMPARISON_RULES,
  generateContentPath,
  embedFieldNames,
  adaptGeminiRequest,
  GEMINI_EMBED_PROMPT_RULES,
  geminiFieldNames,
  GeminiTap,
  EventsToJsonArray,
  methodPath,
  readGeminiRequest,
  usageOfAnswer,
  GEMINI_REQUEST,
} from '@sluice/wire/gemini'
import { capabilitiesOf } from '@sluice/wire/model-capabilities'
import type { TapEndResult, TapPushResult } from '@sluice/wire/sse/stream-tap'
import type { ErrorContent } from '@sluice/wire/upstream-error'
import { type EmbedUpstream, embedUpstream } from '../../../upstreams/embed-upstream.ts'
import type { Conversions } from '../conversions.ts'
import type { Dialect } from '../dialect.ts'
import { throwNoStreams } from '../answer-reader.ts'
import { vectorRequest } from '../embeddings/vector-requests.ts'
import { EmbeddingsPassthrough, embeddingsResponses } from '../embeddings/embeddings-passthrough.ts'
import { EMBEDDINGS_PROTOCOLS } from '../embeddings/client-dialect.ts'
import { ANY_MEDIA, nativeConversation, nativeRequest, nativeTools, planChannels } from '../plan-channels.ts'
import { withRepair } from '../repair-answers.ts'
import { geminiConversion } from '../conversion-dialects.ts'
import type { AttemptRequest, ChannelPlan, ParsedRequest } from '../../request-stages.ts'

/** Parts of a request that are in its path and not in its body. */
export interface GeminiRequestPath {
  readonly model: string
  /** A whole response, a stream of events, a stream as one JSON array, or an embeddings method. */
  readonly form: 'whole' | 'events' | 'array' | EmbedMethod
}

/**
 * Dialect of the Gemini API. Requests are passed through to channels that speak it, and converted for others.
 */
export function geminiDialect(conversions: Conversions, { model, form }: GeminiRequestPath): Dialect {
  if (form === 'embedContent' || form === 'batchEmbedContents') return embedDialect(model, form)
  const stream = form !== 'whole'
  const jsonArray = form === 'array'
  return {
    name: 'gemini',
    endpoint: 'gemini',
    pathModel: model,
    names: geminiFieldNames,
    shape: GEMINI_REQUEST,
    conversation: GEMINI_COMPARISON_RULES,
    keeping: geminiStorageRules,
    ...(jsonArray && { streamType: 'application/json' }),
    read(scan, _headers, reader) {
      const forModel = (name: string): ParsedRequest => {
        const { candidateCount, hasMedia, hasOnlyTexts, ...request } = readGeminiRequest(scan, name)
        const { maxTokens } = request
        const native = (channel: Channel, stated: Model): ChannelPlan => ({
          channel,
          outputMaximum: maxTokens,
          choices: candidateCount,
          ...nativeRequest(channel, 'gemini', name, scan),
          ...nativeConversation(channel, geminiConversion, name, scan),
          ...nativeTools(channel, 'gemini', name, request.providerTools),
          prepare(passThrough) {
            const upstreamModel = channel.model_mapping.get(name) ?? name
            const requiresSignatures = hasOnlyTexts
              ? undefined
              : () =>
                  isGemini(upstreamModel, name) &&
                  capabilitiesOf(upstreamModel, name, stated).gemini.requiresSignatures
            const model = { name, upstreamModel, requiresSignatures }
            const sent: AttemptRequest = {
              protocol: 'gemini',
              path: generateContentPath(upstreamModel, stream),
              headers: [],
              ...adaptGeminiRequest(scan, model, channel, passThrough),
              prompt: geminiConversion.prompt,
              upstreamModel,
              tap: () => (jsonArray ? new ArrayTap() : new GeminiTap()),
              reply: (bytes) => ({ facts: usageOfAnswer(bytes), body: () => bytes }),
            }
            // Only streams of events are repaired, not those that are one array.
            return jsonArray ? sent : withRepair(channel, geminiConversion, sent, candidateCount)
          },
        })
        return {
          ...request,
          model: name,
          stream,
          ...(hasMedia && { measured: ANY_MEDIA }),
          forModel,
          forChannels: (channels, model) =>
            planChannels(
              'gemini',
              name,
              channels,
              model,
              (channel) => native(channel, model),
              (spoken) => {
                const target = { model: name, stream }
                return conversions.decode(geminiConversion, scan, {
                  maxTokens,
                  reader,
                  spoken,
                  target,
                  jsonArray,
                })
              },
            ),
        }
      }
      return forModel(model)
    },
  }
}

/** Whether a name is that of a Gemini model. Requests for other models are not changed. */
function isGemini(...names: readonly string[]): boolean {
  return names.some((name) => /gemini/i.test(name))
}

/**
 * Converts a native stream of events to one JSON array, for a client that requested a stream of this form.
 */
class ArrayTap extends GeminiTap {
  readonly #array = new EventsToJsonArray()

  override keepAliveFrame(): undefined {
    return undefined
  }

  override push(chunk: Buffer): TapPushResult {
    const { forward, terminal } = super.push(chunk)
    this.#dropErrorFrame()
    const elements = forward && this.#array.push(forward)
    return { forward: elements && elements.length > 0 ? elements : undefined, terminal }
  }

  override end(): TapEndResult {
    const end = super.end()
    this.#dropErrorFrame()
    return end
  }

  override takeLastTexts(isCut: boolean): Buffer {
    return this.#array.push(super.takeLastTexts(isCut))
  }

  override finalBytes(charged: Usage): Buffer {
    return this.#last(super.finalBytes(charged))
  }

  override failureFrame(error: ErrorContent): Buffer {
    return this.#last(super.failureFrame(error))
  }

  /**
   * Drops the upstream's error frame, because it is not an array element; `failureFrame` reports the error
   * instead.
   */
  #dropErrorFrame(): void {
    this.errorFrame = undefined
  }

  #last(frames: Buffer): Buffer {
    return Buffer.concat([this.#array.push(frames), this.#array.end()])
  }
}

/**
 * Dialect of the Gemini API's embeddings. Requests are passed through to channels that speak it, and
 * converted for others.
 */
function embedDialect(requestedModel: string, method: EmbedMethod): Dialect {
  return {
    name: 'gemini',
    endpoint: 'embeddings',
    pathModel: requestedModel,
    names: embedFieldNames,
    shape: GEMINI_EMBED_REQUEST,
    keeping: unstreamedStorageRules(method),
    servedBy: EMBEDDINGS_PROTOCOLS,
    read(scan) {
      const { promptBound, inputBounds, hasMedia } = readEmbedRequest(scan, method, requestedModel)
      const forModel = (model: string): ParsedRequest => {
        const upstreamModel = (channel: Channel): string => channel.model_mapping.get(model) ?? model
        const requestInForm = (upstream: EmbedUpstream): AttemptRequest => {
          const dropped: DroppedFields = new Set(reroutingMemberNames(scan))
          const texts = decodeEmbedRequest(scan, method, dropped)
          return vectorRequest(upstream, texts, dropped, () => new EmbedReplyWriter(method))
        }
        const native = (channel: Channel, passThrough: boolean): AttemptRequest => ({
          protocol: 'gemini',
          path: methodPath(upstreamModel(channel), method),
          headers: [],
          ...adaptEmbedRequest(scan, upstreamModel(channel), channel, passThrough),
          prompt: GEMINI_EMBED_PROMPT_RULES,
          upstreamModel: upstreamModel(channel),
          passed: embeddingsResponses('gemini embeddings', () => new EmbeddingsPassthrough(new EmbedReply())),
          tap: throwNoStreams,
          reply: throwNoStreams,
        })
        // Creates the request for channels that speak OpenAI's embeddings protocol.
        const inTexts = (channel: Channel): EmbedUpstream => ({
          form: openAiEmbeddingsApi,
          protocol: 'chat',
          path: '/embeddings',
          model: upstreamModel(channel),
        })
        return {
          model,
          stream: false,
          maxTokens: 0,
          promptBound,
          inputBounds,
          forModel,
          ...(hasMedia && { measured: ANY_MEDIA }),
          forChannels: (channels) =>
            channels.map((channel) => ({
              channel,
              outputMaximum: 0,
              choices: 1,
              prepare(passThrough) {
                if (channel.provider === 'generic' && channel.protocol.includes('gemini'))
                  return native(channel, passThrough)
                return requestInForm(embedUpstream(channel, model) ?? inTexts(channel))
              },
            })),
        }
      }
      return forModel(requestedModel)
    },
  }
}
