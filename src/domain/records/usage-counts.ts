import { whole } from './field-types.ts'
import type { Row } from './record.ts'

const count = <const Column extends string, const Name extends string = Column>(
  column: Column,
  { as, about }: { readonly as?: Name; readonly about?: string } = {},
) => ({ type: whole(), column, as: as ?? (column as string as Name), about, default: 0 })

/**
 * Counts of a usage, in the usage log and in the daily sums. They do not overlap, except for parts of others;
 * all are non-negative safe integers.
 */
export const USAGE_COUNTS = {
  /** Prompt tokens that were neither read from nor written to a cache. */
  input: { ...count('input_tokens'), shown: false },
  /** Output tokens, reasoning included. */
  output: count('output_tokens', { as: 'completion_tokens' }),
  cacheRead: count('cache_read_tokens', { as: 'cached_tokens' }),
  /** Prompt tokens written to the five-minute cache. */
  cacheWrite5m: count('cache_write_5m_tokens'),
  /** Prompt tokens written to the one-hour cache. */
  cacheWrite1h: count('cache_write_1h_tokens'),
  reasoning: count('reasoning_tokens', { about: 'The part of completion_tokens that was reasoning' }),
  /** Web searches by the upstream. */
  webSearches: count('web_searches'),
  // Parts for audio and for images do not overlap.
  audioInput: count('audio_input_tokens', { about: 'The part of prompt_tokens that was audio' }),
  imageInput: count('image_input_tokens', { about: 'The part of prompt_tokens that was images' }),
  audioOutput: count('audio_output_tokens', { about: 'The part of completion_tokens that was audio' }),
  imageOutput: count('image_output_tokens', { about: 'The part of completion_tokens that was images' }),
  /** Rounded up. */
  seconds: count('seconds', { about: 'Seconds of audio that was transcribed or spoken' }),
  /** Unicode code points. */
  characters: count('characters', { about: 'Characters that were spoken' }),
  images: count('images', { about: 'Images that were returned' }),
  searchUnits: count('search_units', { about: 'Search units of rerank calls' }),
} as const

/** Columns of the counts. */
export type UsageColumns = Readonly<Row<typeof USAGE_COUNTS>>
