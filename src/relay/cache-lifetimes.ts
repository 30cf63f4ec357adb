import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { CacheWriteLifetime } from '@sluice/wire/reported-usage'
import { vendorServiceOfChannel } from '../domain/price-data/index.ts'
import { OPENAI } from '../domain/price-data/openai.ts'
import type { ProtocolName } from '@sluice/wire/protocols'
import type { RequestBodyEdits } from '../domain/records/channel.ts'
import type { ChannelPlan } from './request-stages.ts'

/** Beginnings of the names of cache directives. */
const DIRECTIVES = ['cache_control', 'prompt_cache_', 'cachePoint'] as const

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
 * Returns the lifetimes that the cache directives of a client's request name; all lifetimes if members may be
 * written with escapes and therefore not be recognised.
 */
export function cacheLifetimesInRequest({ notes }: ScannedObject): readonly CacheWriteLifetime[] {
  if (!notes.cacheMember) return NONE
  if (notes.longLifetime) return ALL_CACHE_LIFETIMES
  return notes.halfHour ? SHORT : SHORTEST
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
