import { reroutingMemberName } from '../upstream-settings.ts'
import type { DroppedFields } from '../codec.ts'

/**
 * Top-level fields of messages requests that other protocols cannot express. They are reported by their own
 * names.
 */
const FIELDS: ReadonlySet<string> = new Set([
  'cache_control',
  'container',
  'context_management',
  'inference_geo',
  'mcp_servers',
  'speed',
])

/** Names that this codec may report for dropped fields, in addition to those in `FIELDS`. */
type DroppedName =
  /** Reported for any top-level field that the gateway does not know. */
  | 'unknown'
  /**
   * Parts of messages: fields of a block other than its content, and blocks that only another protocol has.
   */
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
  /** Reported for tools that the provider would run itself. */
  | 'tools.server'
  | 'tools.unknown'
  | 'top_k'
  | 'top_p'
  | 'web_search'

/** Reports a dropped field. The type ensures that the name contains no text of a client. */
export function reportDropped(dropped: DroppedFields, name: DroppedName): void {
  dropped.add(name)
}

/** Reports a top-level field that the conversion ignores. */
export function dropField(dropped: DroppedFields, field: string): void {
  dropped.add(FIELDS.has(field) ? field : (reroutingMemberName(field) ?? 'unknown'))
}
