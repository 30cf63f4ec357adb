/** Lifetimes of cached prefixes, in milliseconds. */
export const CACHE_LIFETIME_MS = {
  '5m': 5 * 60_000,
  '30m': 30 * 60_000,
  '1h': 60 * 60_000,
  '12h': 12 * 60 * 60_000,
  '24h': 24 * 60 * 60_000,
} as const

/** Name of a lifetime, as providers write it. */
export type CachedPrefixLifetime = keyof typeof CACHE_LIFETIME_MS

/**
 * Minimum length of a cached prefix in tokens, by the model's name. The first pattern that matches counts.
 */
const MINIMUMS: readonly (readonly [RegExp, number])[] = [
  [/(?:opus|fable|mythos)-5/, 512],
  [/opus-4-[56]|haiku-4-5/, 4096],
  [/opus-4-7|haiku-3|3-5-haiku/, 2048],
  [/gemini-(?:2\.5-pro|[3-9])/, 4096],
  [/nova/, 1000],
]
const MINIMUM = 1024

/** Returns the minimum length, in tokens, of a prefix that is cached for a model. */
export function minimumCachedTokens(model: string): number {
  return MINIMUMS.find(([names]) => names.test(model))?.[1] ?? MINIMUM
}

/** Whether an OpenAI model supports cache breakpoints and charges for written tokens: GPT-5.6 and later. */
export function hasBreakpoints(model: string): boolean {
  const [, major = '0', minor = '0'] = /^gpt-(\d+)(?:\.(\d+))?/.exec(model) ?? []
  return Number(major) > 5 || (Number(major) === 5 && Number(minor) >= 6)
}
