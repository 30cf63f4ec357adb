import type { DroppedFields } from './codec.ts'
import type { Conversation } from './conversation.ts'
import { dropLogprobs } from './logprobs.ts'
import type { Capabilities } from './model-capabilities.ts'
import { isThinkingOff } from './thinking.ts'

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

/** Removes stop sequences and the request for log probabilities, if the model refuses them. */
function withAcceptedOutput(
  conversation: Conversation,
  { takesStop, logprobs: known }: Capabilities,
  dropped: DroppedFields,
): Conversation {
  const { logprobs: _, ...others } = conversation
  const { thinking, stop } = others
  const isThinking = thinking !== undefined && !isThinkingOff(thinking)
  const losesLogprobs = known === 'none' || (known === 'without-thinking' && isThinking)
  const losesStop = !takesStop && stop.length > 0
  if (losesLogprobs) dropLogprobs(conversation, dropped)
  if (losesStop) dropped.add('stop')
  return { ...(losesLogprobs ? others : conversation), ...(losesStop && { stop: [] }) }
}

/**
 * Removes the sampling settings, stop sequences and log probabilities that the model refuses, or that have no effect beside
 * the requested thinking (`thinks`: whether the model can think). They are reported as dropped, except those equal to
 * the default.
 */
export function withAcceptedSampling(
  requested: Conversation,
  capabilities: Capabilities,
  dropped: DroppedFields,
  thinks = capabilities.thinking !== 'none',
): Conversation {
  const { sampling, takesPenalties } = capabilities
  const fitting = withAcceptedOutput(requested, capabilities, dropped)
  const conversation = takesPenalties ? fitting : withoutPenalties(fitting, dropped)
  const { temperature, topP, topK } = conversation
  if (sampling === 'none' || (thinks && conversation.thinkingReplacesSampling)) {
    if (temperature !== undefined && temperature !== 1) dropped.add('temperature')
    if (topP !== undefined && topP !== 1) dropped.add('top_p')
    if (topK !== undefined) dropped.add('top_k')
    return { ...conversation, temperature: undefined, topP: undefined, topK: undefined }
  }
  if (sampling === 'all' || temperature === undefined || topP === undefined) return conversation
  if (topP !== 1) dropped.add('top_p')
  return { ...conversation, topP: undefined }
}
