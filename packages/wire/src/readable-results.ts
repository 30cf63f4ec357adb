import type { Conversation, Part, ToolResultPart } from './conversation.ts'
import type { ConversionProtocol } from './protocols.ts'

/**
 * Writes results of tools of which a protocol could express nothing as the JSON text of their parts, so that the
 * model never gets an empty result in place of content.
 */
export function withReadableResults(conversation: Conversation, protocol: ConversionProtocol): Conversation {
  const isLost = (part: Part): part is ToolResultPart =>
    part.kind === 'tool-result' &&
    part.parts.some((inner) => inner.kind === 'opaque') &&
    part.parts.every((inner) => isEmpty(inner) || (inner.kind === 'opaque' && inner.protocol !== protocol))
  if (!conversation.turns.some(({ parts }) => parts.some(isLost))) return conversation
  const readable = (part: Part): Part =>
    isLost(part) ? { ...part, parts: part.parts.filter((inner) => !isEmpty(inner)).map(asText) } : part
  return {
    ...conversation,
    turns: conversation.turns.map((turn) => ({ ...turn, parts: turn.parts.map(readable) })),
  }
}

function isEmpty(part: ToolResultPart['parts'][number]): boolean {
  return part.kind === 'text' && part.text === ''
}

function asText(part: ToolResultPart['parts'][number]): ToolResultPart['parts'][number] {
  return part.kind === 'opaque' ? { kind: 'text', text: JSON.stringify(part.value) } : part
}
