import type { Usage } from '../domain/usage.ts'

/** The columns of what was used, in a row of the usage log and in a sum of them alike. */
export const COUNT_COLUMNS = [
  'input_tokens',
  'cache_read_tokens',
  'cache_write_5m_tokens',
  'cache_write_1h_tokens',
  'output_tokens',
  'reasoning_tokens',
  'web_searches',
] as const

/** The values of these columns, in their order. */
export function countsOf(usage: Usage): number[] {
  return [
    usage.input,
    usage.cacheRead,
    usage.cacheWrite5m,
    usage.cacheWrite1h,
    usage.output,
    usage.reasoning,
    usage.webSearches,
  ]
}
