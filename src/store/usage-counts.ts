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
  'audio_input_tokens',
  'image_input_tokens',
  'audio_output_tokens',
  'image_output_tokens',
  'seconds',
  'characters',
  'images',
  'search_units',
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
    usage.audioInput,
    usage.imageInput,
    usage.audioOutput,
    usage.imageOutput,
    usage.seconds,
    usage.characters,
    usage.images,
    usage.searchUnits,
  ]
}
