import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { CacheLifetime } from '@sluice/wire/reported-usage'
import { serviceVendor } from '../domain/price-data/index.ts'
import { OPENAI } from '../domain/price-data/openai.ts'
import type { ChannelEdits } from '../domain/records/channel.ts'
import type { ChannelPlan } from './request-stages.ts'

/** Beginnings of the names of cache directives. */
const DIRECTIVES = ['cache_control', 'prompt_cache_', 'cachePoint'] as const

const NONE: readonly CacheLifetime[] = []
/** Lifetimes that a directive without a lifetime may have. */
const UNSTATED: readonly CacheLifetime[] = ['5m', '30m']
/** All lifetimes. */
export const ALL_LIFETIMES: readonly CacheLifetime[] = ['5m', '30m', '1h', '12h']

/**
 * Lifetimes for which the cache directives of a request may make a provider write to its cache. All of them if
 * names may be spelled with escapes.
 */
export function namedLifetimes({ notes }: ScannedObject): readonly CacheLifetime[] {
  if (!notes.cacheMember) return NONE
  return notes.longLifetime ? ALL_LIFETIMES : UNSTATED
}

/** Adds the lifetimes that a channel may cause, by directives of its operator or by writing without directives. */
export function lifetimesAt(
  { channel, tools, sent }: ChannelPlan,
  named: readonly CacheLifetime[] = NONE,
): readonly CacheLifetime[] {
  if (named === ALL_LIFETIMES || addsDirectives(channel)) return ALL_LIFETIMES
  const model = sent?.model ?? tools?.model ?? ''
  return serviceVendor(channel) === OPENAI || WRITES_ALWAYS.test(model) ? UNSTATED : named
}

/** Models that write to their cache without a directive. */
const WRITES_ALWAYS = /gpt-(?:5\.(?:[6-9]|\d\d)|[6-9]|\d\d)/i

function addsDirectives({ override: { set, default: usual } }: ChannelEdits): boolean {
  const edits = [...set, ...usual]
  return edits.some((edit) => DIRECTIVES.some((name) => edit.some((text) => text.includes(name))))
}
