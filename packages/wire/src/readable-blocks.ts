import type { Conversation, Part, ToolResultPart, Turn } from './conversation.ts'
import { asRecord, stringOrEmpty } from './json/record.ts'
import type { ConversionProtocol } from './protocols.ts'
import { withSystemTextsInTurns } from './system-texts-in-turns.ts'

/**
 * Writes blocks that only messages has in the forms of other protocols: the summary of a compacted conversation as a
 * text of the user, in place of all turns before it, and calls by MCP with their results as calls of functions.
 */
export function withReadableBlocks(given: Conversation, protocol: ConversionProtocol): Conversation {
  const isBlock = (part: Part): boolean =>
    summaryIn(part) !== '' || blockOf(part, 'mcp_tool_result') !== undefined
  if (protocol === 'messages' || !given.turns.some(({ parts }) => parts.some(isBlock))) return given
  const conversation = withSystemTextsInTurns(given)
  const compacted = conversation.turns.findLastIndex(({ parts }) =>
    parts.some((part) => summaryIn(part) !== ''),
  )
  const turns = conversation.turns.slice(Math.max(compacted, 0))
  const parts = turns.flatMap((turn) => turn.parts)
  const idsOf = (type: string, id: string): ReadonlySet<unknown> =>
    new Set(parts.map((part) => blockOf(part, type)?.[id]))
  const made = idsOf('mcp_tool_use', 'id')
  const answered = idsOf('mcp_tool_result', 'tool_use_id')

  const written = (part: Part, role: Turn['role']): readonly [Turn['role'], Part] => {
    const text = summaryIn(part)
    if (text !== '') return ['user', { kind: 'text', text }]
    const { id, name, input } = blockOf(part, 'mcp_tool_use') ?? {}
    if (typeof id === 'string' && answered.has(id))
      return [
        'assistant',
        { kind: 'tool-call', id, name: stringOrEmpty(name), input: JSON.stringify(input ?? {}) },
      ]
    const { tool_use_id: callId, is_error, content } = blockOf(part, 'mcp_tool_result') ?? {}
    if (typeof callId === 'string' && made.has(callId))
      return [
        'user',
        { kind: 'tool-result', callId, parts: resultParts(content), isError: is_error === true },
      ]
    return [role, part]
  }
  return { ...conversation, turns: turns.flatMap((turn) => splitByRole(turn, written)) }
}

/** The turns of one turn, some of whose parts belong to the other role. */
function splitByRole(
  turn: Turn,
  written: (part: Part, role: Turn['role']) => readonly [Turn['role'], Part],
): readonly Turn[] {
  const split: { readonly role: Turn['role']; readonly parts: Part[] }[] = []
  for (const given of turn.parts) {
    const [role, part] = written(given, turn.role)
    const last = split.at(-1)
    if (last?.role === role) last.parts.push(part)
    else split.push({ role, parts: [part] })
  }
  return split.length > 0 ? split : [turn]
}

/** The block of messages in a part, if it has this type. */
function blockOf(part: Part, type: string): Readonly<Record<string, unknown>> | undefined {
  const block = part.kind === 'opaque' && part.protocol === 'messages' ? asRecord(part.value) : undefined
  return block?.['type'] === type ? block : undefined
}

function summaryIn(part: Part): string {
  return stringOrEmpty(blockOf(part, 'compaction')?.['content'])
}

function resultParts(content: unknown): ToolResultPart['parts'] {
  if (!Array.isArray(content)) return [{ kind: 'text', text: stringOrEmpty(content) }]
  return content.map((value): ToolResultPart['parts'][number] => {
    const text = asRecord(value)?.['text']
    return typeof text === 'string' ? { kind: 'text', text } : { kind: 'opaque', protocol: 'messages', value }
  })
}
