import { reroutingName } from '../upstream-settings.ts'
import type { Dropped } from '../codec.ts'

/** Top-level fields that other dialects cannot express. */
const FIELDS: ReadonlySet<string> = new Set([
  'cache_control',
  'container',
  'context_management',
  'inference_geo',
  'mcp_servers',
  'speed',
])

/** Further names that decoding or encoding a messages request may report as dropped. */
type DroppedName =
  /** Unknown top-level fields. */
  | 'unknown'
  | 'billing_header'
  /** Fields of a block other than its content, and blocks that only another dialect has. */
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

/** Reports a dropped field. The name comes from a fixed list, so that it never contains a client's text. */
export function reportDropped(dropped: Dropped, name: DroppedName): void {
  dropped.add(name)
}

/** Reports a top-level field that the conversion does not read. */
export function dropField(dropped: Dropped, field: string): void {
  dropped.add(FIELDS.has(field) ? field : (reroutingName(field) ?? 'unknown'))
}
