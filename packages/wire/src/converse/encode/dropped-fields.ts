import type { DroppedFields } from '../../codec.ts'

/** Names of fields of other protocols that this codec may report as dropped. */
type DroppedName =
  | 'content'
  | 'image_url.detail'
  | 'parallel_tool_calls'
  | 'reasoning_content'
  | 'response_format'
  | 'stop'
  | 'temperature'
  | 'thinking'
  | 'tool_choice'
  | 'tools.strict'
  | 'tools.web_search'
  | 'top_k'
  | 'top_p'

/** Reports a dropped field. The type ensures that the name contains no text of a client. */
export function reportDropped(dropped: DroppedFields, name: DroppedName): void {
  dropped.add(name)
}
