import type { Usage } from '../domain/usage.ts'
import type { UsageLogRow } from './schema.ts'
import type { COUNT_COLUMNS } from './usage-counts.ts'

/** Columns of usage, in a row of the usage log or a sum of rows. */
export type UsageColumns = Pick<UsageLogRow, (typeof COUNT_COLUMNS)[number]>

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
    audioInput: row.audio_input_tokens,
    imageInput: row.image_input_tokens,
    audioOutput: row.audio_output_tokens,
    imageOutput: row.image_output_tokens,
    seconds: row.seconds,
    characters: row.characters,
    images: row.images,
    searchUnits: row.search_units,
  }
}
