import { CACHE_LIFETIME_MS, type CachedPrefixLifetime, minimumCachedTokens } from './cache-rules.ts'
import { extendDigest, type PromptCache } from './prompt-cache.ts'

/** Characters of one step of the cache: 128 tokens. */
const STEP = 512
const TOKENS_PER_STEP = 128

/** A prompt of which the provider caches the beginning without being asked to. */
export interface AutomaticallyCachedPrompt {
  /** Everything that separates caches: the account, the model and so on. */
  readonly scope: string
  readonly model: string
  readonly transcript: string
  readonly lifetime: CachedPrefixLifetime
}

/**
 * Returns the number of tokens of the prompt's longest cached prefix, in steps of 128 tokens, and caches the
 * whole prompt.
 */
export function useAutomaticCache(cache: PromptCache, prompt: AutomaticallyCachedPrompt): number {
  const { scope, model, transcript, lifetime } = prompt
  let digest = extendDigest('', scope)
  let steps = 0
  let isCached = true
  for (let at = 0; at + STEP <= transcript.length; at += STEP) {
    digest = extendDigest(digest, transcript.slice(at, at + STEP))
    isCached &&= cache.use(digest)
    if (isCached) steps++
    else cache.write(digest, CACHE_LIFETIME_MS[lifetime])
  }
  const tokens = steps * TOKENS_PER_STEP
  return tokens < minimumCachedTokens(model) ? 0 : tokens
}
