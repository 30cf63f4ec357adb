import { reroutingName } from '../../domain/allowed-field.ts'
import type { Dropped } from '../codec.ts'

/** Top-level fields that no other dialect can express. */
const FIELDS: ReadonlySet<string> = new Set([
  'cache_control',
  'container',
  'context_management',
  'inference_geo',
  'mcp_servers',
  'speed',
])

/** Other names that decoding or encoding a messages request may report. */
type DroppedName =
  /** Unknown top-level fields. */
  | 'unknown'
  /** In messages: a block's fields beside its content, and blocks that only another dialect can express. */
  | 'citations'
  | 'content'
  | 'image_url.detail'
  | 'metadata'
  | 'n'
  | 'output_config'
  | 'parallel_tool_calls'
  | 'reasoning_content'
  | 'response_format'
  | 'service_tier'
  | 'stop'
  | 'temperature'
  | 'thinking'
  | 'tool_choice'
  /** Tools that the provider itself would run. */
  | 'tools.server'
  | 'tools.unknown'
  | 'top_k'
  | 'top_p'
  | 'web_search'

/** Reports a field by a name of the closed list, so that no text of the client is part of it. */
export function drop(dropped: Dropped, name: DroppedName): void {
  dropped.add(name)
}

/** Reports a top-level field that the conversion does not read. */
export function dropField(dropped: Dropped, field: string): void {
  dropped.add(FIELDS.has(field) ? field : (reroutingName(field) ?? 'unknown'))
}
