import type { DroppedFields } from './codec.ts'
import type { Conversation, Part, SearchPart, Turn } from './conversation.ts'
import type { Capabilities } from './model-capabilities.ts'
import { withSystemTextsInTurns } from './system-texts-in-turns.ts'

/** A part that Messages and Converse can express. */
export type EncodablePart = Exclude<Part, SearchPart>

/** A turn of parts that Messages and Converse can express. */
export interface EncodableTurn extends Turn {
  readonly parts: readonly EncodablePart[]
}

/** A conversation of such turns. */
export interface EncodableConversation extends Conversation {
  readonly turns: readonly EncodableTurn[]
}

/**
 * Replaces the turns by those that are sent in Messages and Converse: of the parts that `partsOf` returns, with
 * alternating roles, beginning with the user's, and with tool results first in their turn. An empty
 * assistant's turn is dropped. An empty user's turn is kept, because otherwise the conversation would end with
 * an assistant's turn.
 */
export function withAlternatingTurns(
  given: Conversation,
  partsOf: (turn: Turn) => EncodablePart[],
  { takesPrefill }: Capabilities,
  dropped: DroppedFields,
): EncodableConversation {
  const conversation = withSystemTextsInTurns(given)
  const merged: { readonly role: Turn['role']; readonly parts: EncodablePart[] }[] = []
  for (const turn of conversation.turns) {
    const parts = partsOf(turn)
    const last = merged.at(-1)
    if (last?.role === turn.role) last.parts.push(...parts)
    else if (turn.role === 'user' || parts.length > 0) merged.push({ role: turn.role, parts })
  }
  if (merged[0]?.role !== 'user') merged.unshift({ role: 'user', parts: [] })
  const end = merged.at(-1)
  if (end?.role === 'assistant') {
    if (takesPrefill || !isPrefill(end)) trimEnd(end.parts)
    else {
      dropped.add('messages.prefill')
      merged.push({ role: 'user', parts: [] })
    }
  }
  return { ...conversation, turns: merged.map(resultsFirst) }
}

/**
 * Whether a last turn is a prefill: the beginning of a reply that the model must continue. One that ends with a
 * call, or with a provider's own block, is none.
 */
function isPrefill({ parts }: EncodableTurn): boolean {
  const end = parts.findLast(({ kind }) => kind !== 'thinking')
  return end?.kind !== 'tool-call' && end?.kind !== 'opaque'
}

/** Removes white space at the end of a prefill, because upstreams refuse it. */
function trimEnd(parts: EncodablePart[]): void {
  const last = parts.at(-1)
  if (last?.kind === 'text') parts.splice(-1, 1, { ...last, text: last.text.trimEnd() })
}

function resultsFirst({ role, parts }: EncodableTurn): EncodableTurn {
  const results = parts.filter(({ kind }) => kind === 'tool-result')
  return { role, parts: [...results, ...parts.filter(({ kind }) => kind !== 'tool-result')] }
}
