import type { Logprobs, ReplyPart } from './reply.ts'

/** Log probabilities of all texts of a reply, in order. */
export function logprobsIn(parts: readonly ReplyPart[]): Logprobs {
  return parts.flatMap((part) => (part.kind === 'text' ? (part.logprobs ?? []) : []))
}
