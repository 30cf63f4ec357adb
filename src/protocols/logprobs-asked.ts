import type { Dropped } from './codec.ts'
import type { Conversation } from './conversation.ts'

/**
 * Log probabilities that a client asks for, for spreading into a conversation. `top` is `top_logprobs`, which
 * asks for them by itself where a dialect allows it.
 */
export function logprobsAsked(isAsked: boolean, top: unknown): Pick<Conversation, 'logprobs'> {
  const count = typeof top === 'number' && top > 0 ? top : undefined
  return isAsked || count !== undefined ? { logprobs: { top: count } } : {}
}

/** Names them as left out: the dialect that is written has none. */
export function dropLogprobs({ logprobs }: Pick<Conversation, 'logprobs'>, dropped: Dropped): void {
  if (logprobs) dropped.add('logprobs')
  if (logprobs?.top !== undefined) dropped.add('top_logprobs')
}
