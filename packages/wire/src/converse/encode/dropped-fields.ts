import type { Dropped } from '../../codec.ts'

/** Names of other dialects' fields that this codec may report as dropped. The list is fixed. */
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

/** Reports a dropped field. The name never contains a client's text. */
export function reportDropped(dropped: Dropped, name: DroppedName): void {
  dropped.add(name)
}
