import fc from 'fast-check'

/** Counts, mostly small, so that they often equal and exceed each other. */
export const count = fc.oneof(fc.nat(6), fc.nat(6), fc.constantFrom(1000, 1_000_000_000))
const rubbish = fc.constantFrom<unknown>(null, -1, 0.5, '7', true, {}, [3], 1_000_000_001, Number.NaN)
export const detail = fc.oneof({ weight: 4, arbitrary: count }, { weight: 1, arbitrary: rubbish })

const PROMPT_DETAILS = [
  'cached_tokens',
  'audio_tokens',
  'cached_creation_tokens',
  'cache_write_tokens',
] as const
const TOP = [
  'prompt_cache_hit_tokens',
  'cache_read_input_tokens',
  'num_cached_tokens',
  'cache_creation_input_tokens',
  'claude_cache_creation_5m_tokens',
  'claude_cache_creation_1h_tokens',
] as const

const some = (names: readonly string[]) =>
  fc.record(Object.fromEntries(names.map((name) => [name, detail])), { requiredKeys: [] })
/** Usage of chat whose prompt and completion are counts, with any details. */
export const reportedUsage = fc
  .record({
    counts: fc.record({ prompt_tokens: count, completion_tokens: count, total_tokens: detail }),
    top: some(TOP),
    prompt: fc.oneof(some(PROMPT_DETAILS), rubbish),
    output: fc.oneof(some(['reasoning_tokens']), rubbish),
    tools: fc.oneof(some(['web_search_requests']), rubbish),
  })
  .map(({ counts, top, prompt, output, tools }) => ({
    ...top,
    ...counts,
    prompt_tokens_details: prompt,
    completion_tokens_details: output,
    server_tool_use: tools,
  }))
