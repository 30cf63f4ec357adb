import { useAutomaticCache } from './automatic-cache.ts'
import { type CacheBlock, type CacheUse, useBlockCache } from './block-cache.ts'
import { hasBreakpoints, type CachedPrefixLifetime, minimumCachedTokens } from './cache-rules.ts'
import { type Fields, asFields, asString } from './fields.ts'
import { extendDigest, type PromptCache } from './prompt-cache.ts'

/**
 * Number of characters at the beginning of a prompt (256 tokens) that determine the machine it is routed to.
 */
const ROUTED_CHARACTERS = 1024
const MAX_WRITES = 4
const MAX_BREAKPOINTS = 80

/** The cache of a provider, and the account that uses it. */
export interface AccountCache {
  readonly cache: PromptCache
  readonly account: string
}

/** A prompt of the chat or responses protocol, with all that its cache depends on. */
export interface OpenAiPrompt {
  readonly account: string
  readonly model: string
  readonly body: Fields
  readonly transcript: string
  /** The parts of the prompt; `mark` is set on those with an explicit breakpoint. */
  readonly blocks: readonly CacheBlock[]
}

/**
 * Uses the cache as OpenAI does: from GPT-5.6 on at breakpoints, for earlier models automatically in steps.
 */
export function useOpenAiCache(cache: PromptCache, prompt: OpenAiPrompt): CacheUse {
  const { account, model, body, transcript, blocks } = prompt
  const beginning = transcript.slice(0, ROUTED_CHARACTERS)
  const route = extendDigest(`${account}\n${model}\n${asString(body.prompt_cache_key)}`, beginning)
  const scope = `${route}\n${cache.machineFor(route)}`
  if (hasBreakpoints(model))
    return useBlockCache(cache, withImplicit(blocks, body), {
      scope,
      minimum: minimumCachedTokens(model),
      lookback: 1,
    })
  const lifetime = body.prompt_cache_retention === '24h' ? '24h' : '5m'
  return { read: useAutomaticCache(cache, { scope, model, transcript, lifetime }), writes: {} }
}

/**
 * Marks the parts at which prefixes are searched or written. Prefixes are written at the last breakpoints of
 * the client and, unless the mode is `explicit`, at the end of the prompt. Prefixes are also searched at
 * earlier parts, because an earlier request may have ended there.
 */
function withImplicit(blocks: readonly CacheBlock[], body: Fields): CacheBlock[] {
  const { mode, ttl } = asFields(body.prompt_cache_options)
  const lifetime: CachedPrefixLifetime = ttl === '12h' ? '12h' : '30m'
  const isImplicit = mode !== 'explicit'
  const explicit = blocks.flatMap(({ mark }, at) => (mark === undefined ? [] : [at]))
  const written = new Set(explicit.slice(isImplicit ? 1 - MAX_WRITES : -MAX_WRITES))
  const last = blocks.findLastIndex(({ isSetting }) => isSetting !== true)
  if (isImplicit) written.add(last)
  const candidates = isImplicit ? blocks.map((_, at) => at) : explicit
  const looked = new Set(candidates.filter((at) => blocks[at]?.isSetting !== true).slice(-MAX_BREAKPOINTS))
  return blocks.map(({ content, characters, isSetting }, at): CacheBlock => {
    const block = { content, characters, ...(isSetting && { isSetting }) }
    if (written.has(at)) return { ...block, mark: lifetime }
    return looked.has(at) ? { ...block, mark: lifetime, onlyReads: true } : block
  })
}
