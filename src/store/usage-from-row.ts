import type { Usage } from '../domain/usage.ts'
import type { UsageLogRow } from './schema.ts'

/** Columns of usage, in a row of the usage log or a sum of rows. */
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

/** Converts the columns of usage. */
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
