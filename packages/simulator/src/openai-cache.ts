import { useAutomatically } from './cache-automatic.ts'
import { type CacheBlock, type CacheUse, useBlocks } from './cache-blocks.ts'
import { hasBreakpoints, type Lifetime, minimumOf } from './cache-rules.ts'
import { type Fields, asFields, asString } from './fields.ts'
import { extended, type PromptCache } from './prompt-cache.ts'

/** Characters by which requests are routed: 256 tokens. */
const ROUTED_CHARACTERS = 1024
const MAX_WRITES = 4
const MAX_BREAKPOINTS = 80

/** The cache of a provider, and the account that uses it. */
export interface AccountCache {
  readonly cache: PromptCache
  readonly account: string
}

/** A prompt of chat or responses, as its cache sees it. */
export interface OpenAiPrompt {
  readonly account: string
  readonly model: string
  readonly body: Fields
  readonly transcript: string
  /** Its parts; `mark` is set at explicit breakpoints. */
  readonly blocks: readonly CacheBlock[]
}

/** Uses the cache as OpenAI does: at breakpoints from GPT-5.6 on, otherwise automatically in steps. */
export function useOpenAiCache(cache: PromptCache, prompt: OpenAiPrompt): CacheUse {
  const { account, model, body, transcript, blocks } = prompt
  const beginning = transcript.slice(0, ROUTED_CHARACTERS)
  const route = extended(`${account}\n${model}\n${asString(body.prompt_cache_key)}`, beginning)
  const scope = `${route}\n${cache.machineFor(route)}`
  if (hasBreakpoints(model))
    return useBlocks(cache, withImplicit(blocks, body), {
      scope,
      minimum: minimumOf(model),
      lookback: 1,
    })
  const lifetime = body.prompt_cache_retention === '24h' ? '24h' : '5m'
  return { read: useAutomatically(cache, { scope, model, transcript, lifetime }), writes: {} }
}

/**
 * Marks where a prefix is looked for and written: the last breakpoints of the client, and one at the end unless the
 * mode is `explicit`. Earlier ends of messages are looked for too, since they were the end of an earlier request.
 */
function withImplicit(blocks: readonly CacheBlock[], body: Fields): CacheBlock[] {
  const { mode, ttl } = asFields(body.prompt_cache_options)
  const lifetime: Lifetime = ttl === '12h' ? '12h' : '30m'
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
