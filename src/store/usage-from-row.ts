import type { Usage } from '../domain/usage.ts'
import type { UsageLogRow } from './schema.ts'

/** The columns of what was used: of a row of the usage log, or of a sum of such rows. */
export type UsageColumns = Pick<
  UsageLogRow,
  | 'input_tokens'
  | 'cache_read_tokens'
  | 'cache_write_5m_tokens'
  | 'cache_write_1h_tokens'
  | 'output_tokens'
  | 'reasoning_tokens'
  | 'web_searches'
>

/** What was used, by these columns. */
export function usageFromRow(row: UsageColumns): Usage {
  return {
    input: row.input_tokens,
    cacheRead: row.cache_read_tokens,
    cacheWrite5m: row.cache_write_5m_tokens,
    cacheWrite1h: row.cache_write_1h_tokens,
    output: row.output_tokens,
    reasoning: row.reasoning_tokens,
    webSearches: row.web_searches,
  }
}
