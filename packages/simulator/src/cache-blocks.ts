import { type Lifetime, LIFETIME_MS } from './cache-rules.ts'
import { unmarked } from './cache-diagnostics.ts'
import { asFields, asList } from './fields.ts'
import { IMAGE_PLACEHOLDER } from './media.ts'
import { extended, type PromptCache } from './prompt-cache.ts'
import { tokensOf } from './tokens.ts'

/** Part of a prompt in the order in which it is cached. */
export interface CacheBlock {
  /** Everything that decides whether the part is the same. */
  readonly content: string
  /** Characters that the model reads. */
  readonly characters: number
  /** Set if a breakpoint is at its end. */
  readonly mark?: Lifetime
  /** Whether it is a setting or a role: part of the prefix, but not a block. */
  readonly isSetting?: true
  /** Whether it only reads at its breakpoint, without writing. */
  readonly onlyReads?: true
}

/** How a provider reads its cache. */
export interface CacheReading {
  /** The account, the model, and everything else that separates caches. */
  readonly scope: string
  /** Smallest cached prefix, in tokens. */
  readonly minimum: number
  /** Blocks before a breakpoint, itself included, at which earlier prefixes are looked for. */
  readonly lookback: number
}

/** Tokens of a prompt that were read from the cache, and that were written to it, by lifetime. */
export interface CacheUse {
  readonly read: number
  readonly writes: Readonly<Partial<Record<Lifetime, number>>>
}

interface Position {
  readonly digest: string
  readonly tokens: number
  readonly mark: Lifetime | undefined
  readonly onlyReads: boolean
}

/** Reads the longest cached prefix that a breakpoint finds, and writes a prefix for each breakpoint. */
export function useBlocks(
  cache: PromptCache,
  blocks: readonly CacheBlock[],
  { scope, minimum, lookback }: CacheReading,
): CacheUse {
  const positions = positionsOf(blocks, scope)
  const marked = positions.flatMap(({ mark, tokens }, at) =>
    mark === undefined || tokens < minimum ? [] : [at],
  )
  const read = Math.max(0, ...marked.map((at) => found(cache, positions, at, lookback)))
  const writes: Partial<Record<Lifetime, number>> = {}
  let counted = read
  // Longer lifetimes come first, so each breakpoint is charged for what follows the one before it.
  for (const at of marked) {
    const { digest, mark, tokens, onlyReads } = positions[at] as Position
    if (mark === undefined || onlyReads) continue
    cache.write(digest, LIFETIME_MS[mark])
    if (tokens <= counted) continue
    writes[mark] = (writes[mark] ?? 0) + tokens - counted
    counted = tokens
  }
  return { read, writes }
}

function positionsOf(blocks: readonly CacheBlock[], scope: string): Position[] {
  const positions: Position[] = []
  let digest = extended('', scope)
  let characters = 0
  for (const { content, characters: own, mark, isSetting, onlyReads } of blocks) {
    digest = extended(digest, content)
    characters += own
    if (isSetting !== true)
      positions.push({ digest, tokens: tokensOf(characters), mark, onlyReads: onlyReads === true })
  }
  return positions
}

/** Returns the tokens of the longest cached prefix at or before a breakpoint. */
function found(cache: PromptCache, positions: readonly Position[], from: number, lookback: number): number {
  for (let at = from; at >= 0 && at > from - lookback; at--) {
    const position = positions[at]
    if (position && cache.use(position.digest)) return position.tokens
  }
  return 0
}

/** The parts of a content of chat or responses; a text equals one part of text. */
export function contentBlocks(content: unknown): CacheBlock[] {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : asList(content)
  return parts.map(asFields).map((part): CacheBlock => {
    const text = typeof part.text === 'string' ? part.text : undefined
    return {
      content: text ?? unmarked(part),
      characters: (text ?? IMAGE_PLACEHOLDER).length,
      // The lifetime is that of the request.
      ...(part.prompt_cache_breakpoint != null && { mark: '30m' }),
    }
  })
}
