import type { Channel } from '../domain/records/channel.ts'
import type { ProtocolName } from '../domain/protocols.ts'
import { GatewayError } from '../errors.ts'
import { cohereForm, titanForm } from '../protocols/bedrock-embed/index.ts'
import { batchForm, embedContentForm, predictForm } from '../protocols/gemini/embed/index.ts'
import { methodPath } from '../protocols/gemini/index.ts'
import type { EmbedForm } from '../protocols/texts-to-embed.ts'

/** Upstream that is asked for vectors in a form of its own. */
export interface EmbedUpstream {
  readonly form: EmbedForm
  /** The dialect whose errors it answers with. */
  readonly protocol: ProtocolName
  /** Below the channel's base URL. */
  readonly path: string
  /** The model's name as the upstream knows it. */
  readonly model: string
}

/** Models on Bedrock that embed, by the upstream's name or the client's. */
const ON_BEDROCK: readonly (readonly [RegExp, EmbedForm])[] = [
  [/titan-embed/i, titanForm],
  [/cohere|embed-(?:english|multilingual|v\d)/i, cohereForm],
]

/** Models on Vertex whose method is still `:predict`: those before Gemini's, and its first. */
const IS_PREDICTED = /^(?!.*gemini)|gemini-embedding-001$/i

/** Whether a channel's upstream is asked in the words of the client of chat's `/embeddings`. */
export function isAskedAsSent({ provider, protocol }: Channel): boolean {
  return provider === 'generic' ? protocol.includes('chat') : provider === 'azure'
}

/**
 * How a channel's upstream is asked for vectors of the model `name`; undefined where it is asked as by the
 * client of chat's `/embeddings`. Throws `invalid_request` for a model on Bedrock that embeds nothing.
 */
export function embedUpstream(channel: Channel, name: string): EmbedUpstream | undefined {
  if (isAskedAsSent(channel)) return undefined
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
      return { form: isPredicted ? predictForm : embedContentForm, protocol: 'gemini', path, model }
    }
    case 'azure':
    case 'generic':
      return { form: batchForm, protocol: 'gemini', path: methodPath(model, 'batchEmbedContents'), model }
  }
}
