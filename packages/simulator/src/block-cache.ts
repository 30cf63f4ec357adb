import { type CachedPrefixLifetime, CACHE_LIFETIME_MS } from './cache-rules.ts'
import { withoutBreakpoints } from './cache-diagnostics.ts'
import { asFields, asList } from './fields.ts'
import { IMAGE_PLACEHOLDER } from './media.ts'
import { extendDigest, type PromptCache } from './prompt-cache.ts'
import { estimateTokens } from './tokens.ts'

/** A part of a prompt; parts are cached in their order. */
export interface CacheBlock {
  /** A text that is equal for equal parts. */
  readonly content: string
  /** Number of characters that the model reads. */
  readonly characters: number
  /** Lifetime of the cached prefix that ends here, if the part has a cache breakpoint. */
  readonly mark?: CachedPrefixLifetime
  /** Whether the part is a setting or a role: it belongs to the prefix, but is not counted as a block. */
  readonly isSetting?: true
  /** Whether the cache breakpoint is only used to find a cached prefix, and not to write one. */
  readonly onlyReads?: true
}

/** How a provider looks for cached prefixes. */
export interface CacheReadingRules {
  /** Everything that separates caches: the account, the model and so on. */
  readonly scope: string
  /** Minimum length of a cached prefix, in tokens. */
  readonly minimum: number
  /** Number of blocks, back from and including a breakpoint, at which a cached prefix may end. */
  readonly lookback: number
}

/** Number of tokens of a prompt that were read from the cache, and that were written to it by lifetime. */
export interface CacheUse {
  readonly read: number
  readonly writes: Readonly<Partial<Record<CachedPrefixLifetime, number>>>
}

interface Position {
  readonly digest: string
  readonly tokens: number
  readonly mark: CachedPrefixLifetime | undefined
  readonly onlyReads: boolean
}

/** Reads the longest cached prefix that a breakpoint finds, and writes a prefix for each breakpoint. */
export function useBlockCache(
  cache: PromptCache,
  blocks: readonly CacheBlock[],
  { scope, minimum, lookback }: CacheReadingRules,
): CacheUse {
  const positions = positionsOf(blocks, scope)
  const marked = positions.flatMap(({ mark, tokens }, at) =>
    mark === undefined || tokens < minimum ? [] : [at],
  )
  const read = Math.max(0, ...marked.map((at) => found(cache, positions, at, lookback)))
  const writes: Partial<Record<CachedPrefixLifetime, number>> = {}
  let counted = read
  // Longer lifetimes come first, so each breakpoint is charged for the tokens since the previous one.
  for (const at of marked) {
    const { digest, mark, tokens, onlyReads } = positions[at] as Position
    if (mark === undefined || onlyReads) continue
    cache.write(digest, CACHE_LIFETIME_MS[mark])
    if (tokens <= counted) continue
    writes[mark] = (writes[mark] ?? 0) + tokens - counted
    counted = tokens
  }
  return { read, writes }
}

function positionsOf(blocks: readonly CacheBlock[], scope: string): Position[] {
  const positions: Position[] = []
  let digest = extendDigest('', scope)
  let characters = 0
  for (const { content, characters: own, mark, isSetting, onlyReads } of blocks) {
    digest = extendDigest(digest, content)
    characters += own
    if (isSetting !== true)
      positions.push({ digest, tokens: estimateTokens(characters), mark, onlyReads: onlyReads === true })
  }
  return positions
}

/** Returns the number of tokens of the longest cached prefix that ends at a breakpoint or before it. */
function found(cache: PromptCache, positions: readonly Position[], from: number, lookback: number): number {
  for (let at = from; at >= 0 && at > from - lookback; at--) {
    const position = positions[at]
    if (position && cache.use(position.digest)) return position.tokens
  }
  return 0
}

/** Splits the content of a message into parts. A plain text is treated like a list with one text. */
export function contentBlocks(content: unknown): CacheBlock[] {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : asList(content)
  return parts.map(asFields).map((part): CacheBlock => {
    const text = typeof part.text === 'string' ? part.text : undefined
    return {
      content: text ?? withoutBreakpoints(part),
      characters: (text ?? IMAGE_PLACEHOLDER).length,
      // The lifetime is set for the whole request, not for each breakpoint.
      ...(part.prompt_cache_breakpoint != null && { mark: '30m' }),
    }
  })
}
