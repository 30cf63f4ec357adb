import type { Logprobs, ReplyPart } from './reply.ts'
import type { DroppedFields } from './codec.ts'
import type { Conversation } from './conversation.ts'

/** Log probabilities of all texts of a reply, in order. */
export function logprobsIn(parts: readonly ReplyPart[]): Logprobs {
  return parts.flatMap((part) => (part.kind === 'text' ? (part.logprobs ?? []) : []))
}

/**
 * Reads a client's request for log probabilities, as an object to spread into a conversation. `top` is the
 * value of `top_logprobs`. In some protocols this field alone requests them.
 */
export function readLogprobsRequest(isRequested: boolean, top: unknown): Pick<Conversation, 'logprobs'> {
  const count = typeof top === 'number' && top > 0 ? top : undefined
  return isRequested || count !== undefined ? { logprobs: { top: count } } : {}
}

/** Reports log probabilities as dropped, because the target protocol does not have them. */
export function dropLogprobs({ logprobs }: Pick<Conversation, 'logprobs'>, dropped: DroppedFields): void {
  if (logprobs) dropped.add('logprobs')
  if (logprobs?.top !== undefined) dropped.add('top_logprobs')
}
