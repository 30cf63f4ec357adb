import type { ToolUse } from '../tool-use.ts'
import { asRecord } from '../json/record.ts'
import type { ToolTally } from '../tool-tally.ts'
import { isSearch } from './search-item.ts'

type Item = Readonly<Record<string, unknown>>

/** Items of tools that the provider ran, and the kinds of these tools. */
const KINDS: ReadonlyMap<unknown, ToolUse['kind']> = new Map<unknown, ToolUse['kind']>([
  ['web_search_call', 'web_search'],
  ['x_search_call', 'web_search'],
  ['file_search_call', 'file_search'],
  ['code_interpreter_call', 'code_interpreter'],
  ['shell_call', 'code_interpreter'],
  ['image_generation_call', 'image_generation'],
  ['mcp_call', 'mcp'],
])

/** Records the use of a tool reported by an output item. A container counts once. */
export function noteItem(tally: ToolTally, index: number, value: unknown): void {
  const item = asRecord(value)
  const kind = item && KINDS.get(item['type'])
  if (!kind) return
  const container = containerOf(item)
  if (item['type'] === 'shell_call' && container === undefined) return
  if (item['type'] === 'web_search_call' && !isSearch(item)) return tally.remove(`item ${index}`)
  // The container may be reported only when the item is done.
  if (container !== undefined) tally.remove(`item ${index}`)
  const key = container === undefined ? `item ${index}` : `container ${container}`
  tally.note(key, { kind, count: 1, ...(kind === 'image_generation' && formOf(item)) })
}

/** Records the uses of tools reported by a list of items. */
export function noteItems(tally: ToolTally, output: unknown): void {
  if (Array.isArray(output)) for (const [index, item] of output.entries()) noteItem(tally, index, item)
}

function containerOf(item: Item): string | undefined {
  const id = item['container_id'] ?? asRecord(item['environment'])?.['container_id']
  return typeof id === 'string' && id !== '' ? id : undefined
}

function formOf({ size, quality }: Item): Pick<ToolUse, 'form'> {
  return typeof size === 'string' && typeof quality === 'string' ? { form: `${size}/${quality}` } : {}
}
