import type { DroppedFields } from './codec.ts'
import type { Conversation } from './conversation.ts'
import type { Capabilities } from './model-capabilities.ts'

/**
 * Adds an empty turn of the user after a prefill (the beginning of a reply that the model must continue), for a
 * model that refuses one. A turn that ends with a call, or with a provider's own block, is no prefill.
 */
export function withoutRefusedPrefill<Given extends Conversation>(
  conversation: Given,
  { takesPrefill }: Capabilities,
  dropped: DroppedFields,
): Given {
  const { turns } = conversation
  const last = turns.at(-1)
  if (takesPrefill || last?.role !== 'assistant') return conversation
  const end = last.parts.findLast(
    (part) =>
      part.kind === 'tool-call' ||
      part.kind === 'opaque' ||
      (part.kind === 'text' && part.text.trim() !== ''),
  )
  if (end?.kind !== 'text') return conversation
  dropped.add('messages.prefill')
  return { ...conversation, turns: [...turns, { role: 'user', parts: [] }] }
}
