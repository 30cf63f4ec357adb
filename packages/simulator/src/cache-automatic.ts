import { LIFETIME_MS, type Lifetime, minimumOf } from './cache-rules.ts'
import { extended, type PromptCache } from './prompt-cache.ts'

/** Characters of one step of the cache: 128 tokens. */
const STEP = 512
const TOKENS_PER_STEP = 128

/** A prompt of which the provider caches the beginning without being asked to. */
export interface AutomaticPrompt {
  /** Everything that separates caches: the account, the model and so on. */
  readonly scope: string
  readonly model: string
  readonly transcript: string
  readonly lifetime: Lifetime
}

/**
 * Returns the number of tokens of the prompt's longest cached prefix, in steps of 128 tokens, and caches the
 * whole prompt.
 */
export function useAutomatically(cache: PromptCache, prompt: AutomaticPrompt): number {
  const { scope, model, transcript, lifetime } = prompt
  let digest = extended('', scope)
  let steps = 0
  let isCached = true
  for (let at = 0; at + STEP <= transcript.length; at += STEP) {
    digest = extended(digest, transcript.slice(at, at + STEP))
    isCached &&= cache.use(digest)
    if (isCached) steps++
    else cache.write(digest, LIFETIME_MS[lifetime])
  }
  const tokens = steps * TOKENS_PER_STEP
  return tokens < minimumOf(model) ? 0 : tokens
}
