import { CACHE_BREAKPOINT_FIELD } from '@sluice/wire/cache-marks'
import { ROOT, type ScannedObject } from '@sluice/wire/json/scanned-object'
import type { CacheWriteLifetime } from '@sluice/wire/reported-usage'
import { vendorServiceOfChannel } from '../domain/price-data/index.ts'
import { OPENAI } from '../domain/price-data/openai.ts'
import type { ProtocolName } from '@sluice/wire/protocols'
import type { Shape } from '@sluice/wire/shape/define-shape'
import { hasKind, indexOf, kindOfCode, type Outline, outlineOf } from '@sluice/wire/shape/outline'
import { KIND } from '@sluice/wire/shape/vocabulary'
import type { RequestBodyEdits } from '../domain/records/channel.ts'
import type { ChannelPlan } from './request-stages.ts'

/** Beginnings of the names of cache directives. */
const DIRECTIVES = ['cache_control', 'prompt_cache_', 'cachePoint'] as const

const CACHE_KEY = 'prompt_cache_key'
/** Lifetimes of an hour or more. */
const LONG_LIFETIMES: ReadonlySet<string> = new Set(['1h', '12h', '24h'])
/** Longer strings are neither names of cache directives nor lifetimes, even with an escape sequence for each letter. */
const MAX_WORD_BYTES = 150

const NONE: readonly CacheWriteLifetime[] = []
const SHORTEST: readonly CacheWriteLifetime[] = ['5m']
/**
 * Cache lifetimes that are possible if no directive names an hour or more. Some upstreams have only one of
 * the two.
 */
const SHORT: readonly CacheWriteLifetime[] = ['5m', '30m']
/** All lifetimes of provider caches. */
export const ALL_CACHE_LIFETIMES: readonly CacheWriteLifetime[] = ['5m', '30m', '1h', '12h']

/**
 * Returns the lifetimes that the cache directives of a client's request name. What the shape does not describe may be a
 * directive of another server. A cache key counts like a directive without a lifetime.
 */
export function cacheLifetimesInRequest(scan: ScannedObject, shape: Shape): readonly CacheWriteLifetime[] {
  const hasKey = scan.has(CACHE_KEY)
  if (!hasKind(scan, shape, KIND.mark) && !hasKind(scan, shape, KIND.undescribed))
    return hasKey ? SHORTEST : NONE
  let isCached = hasKey
  let hasHalfHour = false
  for (const word of cacheWords(scan, outlineOf(scan, shape))) {
    if (LONG_LIFETIMES.has(word)) return ALL_CACHE_LIFETIMES
    isCached ||= DIRECTIVES.some((name) => word.startsWith(name))
    hasHalfHour ||= word === '30m' || word.startsWith(CACHE_BREAKPOINT_FIELD)
  }
  if (!isCached) return NONE
  return hasHalfHour ? SHORT : SHORTEST
}

/** The short strings of cache directives, with their names, and of what the shape does not describe. */
function* cacheWords(scan: ScannedObject, outline: Outline): Iterable<string> {
  for (let node = ROOT + 3; node < scan.tape.length; node += 3) {
    const kind = kindOfCode(outline[indexOf(node)] as number)
    const isName = kind === KIND.structure && kindOfCode(outline[indexOf(node) + 1] as number) === KIND.mark
    if (kind !== KIND.mark && kind !== KIND.undescribed && !isName) continue
    if (scan.kindOf(node) === 'string' && scan.endOf(node) - scan.startOf(node) <= MAX_WORD_BYTES)
      yield scan.keyText(node)
  }
}

/**
 * Returns the lifetimes with which the request to a channel may write to a cache: those that the client
 * named, which conversion may lengthen, and those that the channel adds by the operator's directives or by
 * caching without directives.
 */
export function cacheLifetimesAtChannel(
  { channel, tools, sent }: ChannelPlan,
  named: readonly CacheWriteLifetime[] = NONE,
): readonly CacheWriteLifetime[] {
  if (named === ALL_CACHE_LIFETIMES || addsDirectives(channel)) return ALL_CACHE_LIFETIMES
  const isOfOpenAi = vendorServiceOfChannel(channel) === OPENAI
  const keepers = sent && HALF_HOURS[sent.dialect]
  if (named.includes('30m') && keepers !== 'all' && !(keepers === 'of OpenAI' && isOfOpenAi))
    return ALL_CACHE_LIFETIMES
  const model = sent?.model ?? tools?.model ?? ''
  return named.length > 0 || isOfOpenAi || WRITES_ALWAYS.test(model) ? SHORT : NONE
}

/**
 * Which upstreams of a dialect accept a cache lifetime of half an hour. All others are sent a lifetime of one
 * hour instead, and so are chat upstreams that get `cache_control`.
 */
const HALF_HOURS: Readonly<Record<ProtocolName, 'all' | 'of OpenAI' | 'none'>> = {
  chat: 'of OpenAI',
  messages: 'none',
  responses: 'all',
  gemini: 'none',
  converse: 'none',
  rerank: 'none',
}

/** Models that write to their cache even without a directive. */
const WRITES_ALWAYS = /gpt-(?:5\.(?:[6-9]|\d\d)|[6-9]|\d\d)/i

function addsDirectives({ override: { set, default: usual } }: RequestBodyEdits): boolean {
  const edits = [...set, ...usual]
  return edits.some((edit) => DIRECTIVES.some((name) => edit.some((text) => text.includes(name))))
}
