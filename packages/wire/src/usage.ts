/**
 * Usage of one response. No token is counted in two fields, unless a field says that it is part of another.
 * `input` excludes tokens read from or written to a cache. All values are non-negative safe integers.
 */
export interface Usage {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite5m: number
  readonly cacheWrite1h: number
  readonly cacheWrite30m: number
  readonly cacheWrite12h: number
  /** The part of `output` that was reasoning. */
  readonly reasoning: number
  /** Number of web searches by the provider. */
  readonly webSearches: number
  /** The part of `input` that was audio. */
  readonly audioInput: number
  /** Tokens of images; they are included in `input`. */
  readonly imageInput: number
  /** The part of `output` that was audio. */
  readonly audioOutput: number
  /** The part of `output` that was images. */
  readonly imageOutput: number
  /** Seconds of transcribed or spoken audio, rounded up. */
  readonly seconds: number
  /** Number of spoken characters, as Unicode code points. */
  readonly characters: number
  /** Number of images in the response. */
  readonly images: number
  /** Number of search units, the unit in which rerank calls are charged. */
  readonly searchUnits: number
  /** The part of `cacheRead` that was audio; absent if it is 0 or unknown. */
  readonly audioCacheRead?: number
  /** The part of `cacheRead` that was images; absent if it is 0 or unknown. */
  readonly imageCacheRead?: number
}

/** A usage in which all counts are 0. */
export const NO_USAGE: Usage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite5m: 0,
  cacheWrite1h: 0,
  cacheWrite30m: 0,
  cacheWrite12h: 0,
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

/** Number of all prompt tokens, cached or not. */
export function promptTokens({
  input,
  cacheRead,
  cacheWrite5m,
  cacheWrite1h,
  cacheWrite30m,
  cacheWrite12h,
}: Usage): number {
  return input + cacheRead + cacheWrite5m + cacheWrite1h + cacheWrite30m + cacheWrite12h
}

/** Tokens written to caches of any lifetime. */
export function cacheWriteTokens({
  cacheWrite5m,
  cacheWrite1h,
  cacheWrite30m,
  cacheWrite12h,
}: Usage): number {
  return cacheWrite5m + cacheWrite1h + cacheWrite30m + cacheWrite12h
}

/** Returns the sum of two usages: each count of one plus the same count of the other. */
export function addUsage(one: Usage, other: Usage): Usage {
  const names = Object.keys(NO_USAGE) as (keyof typeof NO_USAGE)[]
  return Object.fromEntries(
    names.map((name) => [name, (one[name] ?? 0) + (other[name] ?? 0)]),
  ) as unknown as Usage
}
