import type { DroppedFields } from './codec.ts'
import type { Conversation } from './conversation.ts'
import type { Capabilities } from './model-capabilities.ts'

type Penalties = Pick<Conversation, 'presencePenalty' | 'frequencyPenalty'>

/** Removes the penalties. They are reported as dropped, except a penalty of 0, which is the default. */
function withoutPenalties(conversation: Conversation, dropped: DroppedFields): Conversation {
  dropPenalties(conversation, dropped)
  return { ...conversation, presencePenalty: undefined, frequencyPenalty: undefined }
}

/** Reports the seed and the penalties as dropped, because the target protocol has neither. */
export function dropSeedAndPenalties(
  conversation: Penalties & Pick<Conversation, 'seed'>,
  dropped: DroppedFields,
): void {
  if (conversation.seed !== undefined) dropped.add('seed')
  dropPenalties(conversation, dropped)
}

function dropPenalties(
  { presencePenalty = 0, frequencyPenalty = 0 }: Penalties,
  dropped: DroppedFields,
): void {
  if (presencePenalty !== 0) dropped.add('presence_penalty')
  if (frequencyPenalty !== 0) dropped.add('frequency_penalty')
}

/**
 * Removes the sampling settings that the model refuses. They are reported as dropped, except those equal to
 * the default.
 */
export function withAcceptedSampling(
  requested: Conversation,
  { sampling, takesPenalties }: Capabilities,
  dropped: DroppedFields,
): Conversation {
  const conversation = takesPenalties ? requested : withoutPenalties(requested, dropped)
  const { temperature, topP, topK } = conversation
  if (sampling === 'all') return conversation
  if (sampling === 'none') {
    if (temperature !== undefined && temperature !== 1) dropped.add('temperature')
    if (topP !== undefined && topP !== 1) dropped.add('top_p')
    if (topK !== undefined) dropped.add('top_k')
    return { ...conversation, temperature: undefined, topP: undefined, topK: undefined }
  }
  if (temperature === undefined || topP === undefined) return conversation
  if (topP !== 1) dropped.add('top_p')
  return { ...conversation, topP: undefined }
}
