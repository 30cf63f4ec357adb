import type { Dropped } from './codec.ts'
import type { Conversation } from './conversation.ts'

type Penalties = Pick<Conversation, 'presencePenalty' | 'frequencyPenalty'>

/** Removes the penalties. A penalty of 0 is the default and is not reported as dropped. */
export function withoutPenalties(conversation: Conversation, dropped: Dropped): Conversation {
  dropPenalties(conversation, dropped)
  return { ...conversation, presencePenalty: undefined, frequencyPenalty: undefined }
}

/** Reports the seed and the penalties as dropped, for a dialect that has neither. */
export function dropSeedAndPenalties(
  conversation: Penalties & Pick<Conversation, 'seed'>,
  dropped: Dropped,
): void {
  if (conversation.seed !== undefined) dropped.add('seed')
  dropPenalties(conversation, dropped)
}

function dropPenalties({ presencePenalty = 0, frequencyPenalty = 0 }: Penalties, dropped: Dropped): void {
  if (presencePenalty !== 0) dropped.add('presence_penalty')
  if (frequencyPenalty !== 0) dropped.add('frequency_penalty')
}
