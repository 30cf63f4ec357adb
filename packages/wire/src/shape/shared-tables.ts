import type { Members } from './vocabulary.ts'

/** A mark of the prompt cache, in the dialects of OpenAI and Anthropic. */
export const MARK = {
  Mark: { comparison_response_id: 'id', mode: 'mark', scope: 'mark', ttl: 'mark', type: 'mark' },
} as const satisfies Readonly<Record<'Mark', Members<never>>>

/** Location of the user, for web searches. */
export const LOCATION = {
  Location: {
    approximate: 'Location',
    city: 'text',
    country: 'text',
    region: 'text',
    timezone: 'text',
    type: 'term',
  },
} as const satisfies Readonly<Record<'Location', Members<'Location'>>>

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
