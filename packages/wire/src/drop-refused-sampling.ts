import type { Dropped } from './codec.ts'
import type { Conversation } from './conversation.ts'
import { withoutPenalties } from './sampling.ts'
import type { Capabilities } from './model-capabilities.ts'

/**
 * Removes the sampling settings that the model refuses. A value equal to the default is not reported as
 * dropped.
 */
export function withAcceptedSampling(
  requested: Conversation,
  { sampling, takesPenalties }: Capabilities,
  dropped: Dropped,
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
