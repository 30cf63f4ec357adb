import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'
import type { Logprobs } from '../reply.ts'

/** Renders the `logprobs` of a choice; null if there are none. */
export function writeLogprobs(tokens: Logprobs | undefined): object | null {
  return tokens && tokens.length > 0 ? { content: tokens.map(writeToken), refusal: null } : null
}

/** Chat's tokens have members that the deltas of responses do not. */
function writeToken(value: unknown): Fields {
  const token = asRecord(value) ?? {}
  const others = token['top_logprobs']
  return {
    ...token,
    bytes: token['bytes'] ?? null,
    top_logprobs: Array.isArray(others)
      ? others.map((other) => ({ ...asRecord(other), bytes: asRecord(other)?.['bytes'] ?? null }))
      : [],
  }
}
