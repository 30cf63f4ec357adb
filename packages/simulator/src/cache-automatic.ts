import { LIFETIME_MS, type Lifetime, minimumOf } from './cache-rules.ts'
import { extended, type PromptCache } from './prompt-cache.ts'

/** Characters of a step: 128 tokens. */
const STEP = 512
const TOKENS_PER_STEP = 128

/** A prompt whose provider caches its prefix without a directive. */
export interface AutomaticPrompt {
  /** The account, the model, and everything else that separates caches. */
  readonly scope: string
  readonly model: string
  readonly transcript: string
  readonly lifetime: Lifetime
}

/** Returns the tokens of the prompt's longest cached prefix, in steps of 128, and caches all of it. */
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
