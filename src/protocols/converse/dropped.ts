import type { Dropped } from '../codec.ts'

/** Names that this codec may report: a closed list of fields of other wires. */
type DroppedName =
  | 'cache_control'
  | 'cache_control.ttl'
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

/** Names what is left out: text of the client's is never part of it. */
export function drop(dropped: Dropped, name: DroppedName): void {
  dropped.add(name)
}
