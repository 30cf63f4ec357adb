import type { Dropped } from '../codec.ts'

/** Top-level fields that no other wire can say. */
const FIELDS: ReadonlySet<string> = new Set([
  'cache_control',
  'container',
  'context_management',
  'inference_geo',
  'mcp_servers',
  'metadata',
  'output_format',
  'service_tier',
  'speed',
])

/** Every other name that reading or writing a messages request may report. */
export type DroppedName =
  | 'assistant_media'
  | 'citations'
  | 'other_fields'
  | 'output_config'
  | 'parallel_tool_calls'
  | 'server_tools'
  | 'stop'
  | 'temperature'
  | 'thinking'
  | 'thinking.display'
  | 'thinking_blocks'
  | 'tool_choice'
  | 'tools.other_fields'
  | 'tools.strict'
  | 'top_k'
  | 'top_p'
  | 'web_search.other_fields'
  | 'opaque_blocks'

/** Reports a field by a name of the closed list: text of the caller's is never part of it. */
export function drop(dropped: Dropped, name: DroppedName): void {
  dropped.add(name)
}

/** Reports a top-level field that the conversion does not read. */
export function dropField(dropped: Dropped, field: string): void {
  dropped.add(FIELDS.has(field) ? field : 'other_fields')
}
