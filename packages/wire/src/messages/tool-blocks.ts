import type { ToolUse } from '../tool-use.ts'
import { asRecord } from '../json/record.ts'
import { ToolTally } from '../tool-tally.ts'

/** Tools that the provider ran, by their names in blocks. */
const KINDS: ReadonlyMap<unknown, ToolUse['kind']> = new Map<unknown, ToolUse['kind']>([
  ['web_search', 'web_search'],
  ['web_fetch', 'web_fetch'],
  ['code_execution', 'code_execution'],
  ['bash_code_execution', 'code_execution'],
  ['text_editor_code_execution', 'code_execution'],
])

/**
 * Records the use of a tool reported by a block. All code of a message runs in one container, which counts
 * once.
 */
export function noteBlock(tally: ToolTally, index: number, value: unknown): void {
  const block = asRecord(value)
  const type = block?.['type']
  const kind =
    type === 'mcp_tool_use' ? 'mcp' : type === 'server_tool_use' ? KINDS.get(block?.['name']) : undefined
  if (kind) tally.note(kind === 'code_execution' ? 'container' : `block ${index}`, { kind, count: 1 })
}

/** Returns the uses of tools reported by the blocks of a message. */
export function usesIn(content: unknown): readonly ToolUse[] {
  const tally = new ToolTally()
  if (Array.isArray(content)) for (const [index, block] of content.entries()) noteBlock(tally, index, block)
  return tally.uses
}
