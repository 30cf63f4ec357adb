import type { Members } from './shape/vocabulary.ts'

/** Members that select how OpenAI serves a request, at all of its text endpoints. */
export const OPENAI_SERVICE = {
  metadata: 'data',
  model: 'name',
  parallel_tool_calls: 'number',
  prompt_cache_key: 'text',
  prompt_cache_options: 'mark | Mark',
  prompt_cache_retention: 'mark',
  safety_identifier: 'text',
  service_tier: 'term',
  store: 'number',
  stream: 'number',
  stream_options: 'term',
  user: 'text',
} as const satisfies Members<'Mark'>
