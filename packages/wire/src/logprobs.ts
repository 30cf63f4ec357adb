import type { Logprobs, ReplyPart } from './reply.ts'
import type { Dropped } from './codec.ts'
import type { Conversation } from './conversation.ts'

/** Log probabilities of all texts of a reply, in order. */
export function logprobsIn(parts: readonly ReplyPart[]): Logprobs {
  return parts.flatMap((part) => (part.kind === 'text' ? (part.logprobs ?? []) : []))
}

/**
 * The log probabilities that a client requests, as an object to spread into a conversation. `top` is the
 * value of `top_logprobs`, which is a request by itself in some dialects.
 */
export function readLogprobsRequest(isRequested: boolean, top: unknown): Pick<Conversation, 'logprobs'> {
  const count = typeof top === 'number' && top > 0 ? top : undefined
  return isRequested || count !== undefined ? { logprobs: { top: count } } : {}
}

/** Reports log probabilities as dropped, for target dialects that have none. */
export function dropLogprobs({ logprobs }: Pick<Conversation, 'logprobs'>, dropped: Dropped): void {
  if (logprobs) dropped.add('logprobs')
  if (logprobs?.top !== undefined) dropped.add('top_logprobs')
}
