import { PROMPT_COUNTS } from './token-kinds.ts'

/**
 * Usage of one response. Counts do not overlap, except for parts of others: `input` excludes cached tokens.
 * All are non-negative safe integers.
 */
export interface Usage {
  /** Prompt tokens that were neither read from nor written to a cache. */
  readonly input: number
  readonly cacheRead: number
  /** Prompt tokens written to the five-minute cache. */
  readonly cacheWrite5m: number
  /** Prompt tokens written to the one-hour cache. */
  readonly cacheWrite1h: number
  /** Output tokens, reasoning included. */
  readonly output: number
  /** Reasoning part of `output`. */
  readonly reasoning: number
  /** Web searches by the upstream. */
  readonly webSearches: number
  /** Parts of `input` that stand for audio and for images; the two do not overlap. */
  readonly audioInput: number
  readonly imageInput: number
  /**
   * Parts of `cacheRead` that stand for audio and for images; absent = none, or not known. They shape the
   * charge, and are not stored with it.
   */
  readonly audioCacheRead?: number
  readonly imageCacheRead?: number
  /** Parts of `output` that stand for audio and for images; the two do not overlap. */
  readonly audioOutput: number
  readonly imageOutput: number
  /** Seconds of the recording that was transcribed or spoken, rounded up. */
  readonly seconds: number
  /** Characters (Unicode code points) that were spoken. */
  readonly characters: number
  /** Images that were returned. */
  readonly images: number
  /** Search units of a rerank call. */
  readonly searchUnits: number
}

/** Zero usage. */
export const NO_USAGE: Usage = {
  input: 0,
  cacheRead: 0,
  cacheWrite5m: 0,
  cacheWrite1h: 0,
  output: 0,
  reasoning: 0,
  webSearches: 0,
  audioInput: 0,
  imageInput: 0,
  audioOutput: 0,
  imageOutput: 0,
  seconds: 0,
  characters: 0,
  images: 0,
  searchUnits: 0,
}

/** All prompt tokens, cached or not, which determine the price tier. */
export function promptTokens(usage: Usage): number {
  let tokens = 0
  for (const count of PROMPT_COUNTS) tokens += usage[count] ?? 0
  return tokens
}

/** Tokens written to caches, for any time. */
export function writtenTokens(usage: Usage): number {
  return promptTokens(usage) - usage.input - usage.cacheRead
}

/** Sums of all counts. */
export function addedUsage(one: Usage, other: Usage): Usage {
  const names = Object.keys(NO_USAGE) as (keyof Usage)[]
  return Object.fromEntries(
    names.map((name) => [name, (one[name] ?? 0) + (other[name] ?? 0)]),
  ) as unknown as Usage
}
