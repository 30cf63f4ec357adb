import type { Conversation, Part, ToolResultPart } from './conversation.ts'
import type { ConversionProtocol } from './protocols.ts'

/**
 * Writes results of tools of which a protocol could express nothing as the JSON text of their parts, so that the
 * model never gets an empty result in place of content.
 */
export function withReadableResults(conversation: Conversation, protocol: ConversionProtocol): Conversation {
  const isLost = (part: Part): part is ToolResultPart =>
    part.kind === 'tool-result' &&
    part.parts.length > 0 &&
    part.parts.every((inner) => inner.kind === 'opaque' && inner.protocol !== protocol)
  if (!conversation.turns.some(({ parts }) => parts.some(isLost))) return conversation
  const readable = (part: Part): Part => (isLost(part) ? { ...part, parts: part.parts.map(asText) } : part)
  return {
    ...conversation,
    turns: conversation.turns.map((turn) => ({ ...turn, parts: turn.parts.map(readable) })),
  }
}

function asText(part: ToolResultPart['parts'][number]): ToolResultPart['parts'][number] {
  return part.kind === 'opaque' ? { kind: 'text', text: JSON.stringify(part.value) } : part
}
