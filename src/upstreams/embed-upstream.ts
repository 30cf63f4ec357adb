import type { Channel } from '../domain/records/channel.ts'
import type { ProtocolName } from '@sluice/wire/protocols'
import { GatewayError } from '../errors.ts'
import { cohereEmbeddingsApi, titanEmbeddingsApi } from '@sluice/wire/bedrock-embeddings-apis'
import { batchEmbedContentsApi, embedContentApi, predictApi } from '@sluice/wire/gemini/embed'
import { methodPath } from '@sluice/wire/gemini'
import type { EmbeddingsApi } from '@sluice/wire/texts-to-embed'

/** How to request embeddings from an upstream that does not support OpenAI's protocol for them. */
export interface EmbedUpstream {
  readonly form: EmbeddingsApi
  /** The protocol of the upstream's error responses. */
  readonly protocol: ProtocolName
  /** The path, relative to the channel's base URL. */
  readonly path: string
  /** The upstream's name for the model. */
  readonly model: string
}

/**
 * Request formats of embedding models on Bedrock. The pattern matches the upstream's or the client's name of
 * the model.
 */
const ON_BEDROCK: readonly (readonly [RegExp, EmbeddingsApi])[] = [
  [/titan-embed/i, titanEmbeddingsApi],
  [/cohere|embed-(?:english|multilingual|v\d)/i, cohereEmbeddingsApi],
]

/**
 * Matches the embedding models on Vertex AI that still have the method `:predict`: models from before Gemini,
 * and Gemini's first embedding model.
 */
const IS_PREDICTED = /^(?!.*gemini)|gemini-embedding-001$/i

/** Whether a channel's upstream speaks OpenAI's protocol for embeddings. */
export function speaksOpenAiEmbeddings({ provider, protocol }: Channel): boolean {
  return provider === 'generic' ? protocol.includes('chat') : provider === 'azure'
}

/**
 * How to request embeddings of the model `name` from a channel; undefined if its upstream speaks OpenAI's
 * protocol. Throws `invalid_request` for a model on Bedrock that has no embeddings.
 */
export function embedUpstream(channel: Channel, name: string): EmbedUpstream | undefined {
  if (speaksOpenAiEmbeddings(channel)) return undefined
  const model = channel.model_mapping.get(name) ?? name
  switch (channel.provider) {
    case 'bedrock': {
      const form = [model, name].flatMap(
        (one) => ON_BEDROCK.find(([pattern]) => pattern.test(one))?.[1] ?? [],
      )[0]
      if (!form)
        throw new GatewayError(
          'invalid_request',
          `The model '${name}' has no embeddings at its provider that are known here: those of Titan and Cohere are.`,
        )
      return { form, protocol: 'converse', path: '/invoke', model }
    }
    case 'vertex': {
      const isPredicted = IS_PREDICTED.test(model)
      const path = methodPath(model, isPredicted ? 'predict' : 'embedContent')
      return { form: isPredicted ? predictApi : embedContentApi, protocol: 'gemini', path, model }
    }
    case 'azure':
    case 'generic':
      return {
        form: batchEmbedContentsApi,
        protocol: 'gemini',
        path: methodPath(model, 'batchEmbedContents'),
        model,
      }
  }
}
