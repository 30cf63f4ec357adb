import { NO_USAGE, type Usage, writtenTokens } from '../usage.ts'

/** Renders usage. The input excludes cache reads and writes; `docs/api.md: Messages response`. */
export function writeUsage(usage: Usage = NO_USAGE): object {
  const { input, cacheRead, cacheWrite5m, cacheWrite1h, output, reasoning, webSearches } = usage
  return {
    input_tokens: input,
    cache_creation_input_tokens: writtenTokens(usage),
    cache_read_input_tokens: cacheRead,
    cache_creation: {
      ephemeral_5m_input_tokens: cacheWrite5m,
      ephemeral_1h_input_tokens: cacheWrite1h,
    },
    output_tokens: output,
    ...(reasoning > 0 && { output_tokens_details: { thinking_tokens: reasoning } }),
    ...(webSearches > 0 && { server_tool_use: { web_search_requests: webSearches } }),
  }
}
