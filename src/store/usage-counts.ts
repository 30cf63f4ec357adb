import type { Usage } from '../domain/usage.ts'

/** Columns of usage, in the usage log and in the daily sums. */
export const COUNT_COLUMNS = [
  'input_tokens',
  'cache_read_tokens',
  'cache_write_5m_tokens',
  'cache_write_1h_tokens',
  'output_tokens',
  'reasoning_tokens',
  'web_searches',
] as const

/** Lists the values of `COUNT_COLUMNS`, in the same order. */
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
