import type { CacheLifetime } from '@sluice/wire/reported-usage'
import { serviceVendor } from '../domain/price-data/index.ts'
import { OPENAI } from '../domain/price-data/openai.ts'
import type { ChannelEdits } from '../domain/records/channel.ts'
import type { ChannelPlan } from './request-stages.ts'

/** Beginnings and parts of the names of cache directives. */
const DIRECTIVES = ['cache_control', 'prompt_cache_', 'cachePoint'] as const
const ESCAPE = Buffer.from('\\u00')

const NONE: readonly CacheLifetime[] = []
/** Lifetimes of a directive that states none. */
const UNSTATED: readonly CacheLifetime[] = ['5m', '30m']
const ALL: readonly CacheLifetime[] = ['5m', '30m', '1h', '12h']

/**
 * Lifetimes for which the cache directives of a request may make a provider write to its cache. All of them if
 * names may be spelled with escapes.
 */
export function namedLifetimes(body: Buffer): readonly CacheLifetime[] {
  if (hasEscapedLetters(body)) return ALL
  if (!DIRECTIVES.some((name) => body.includes(name))) return NONE
  return body.includes('"1h"') || body.includes('"12h"') || body.includes('"24h"') ? ALL : UNSTATED
}

/** Adds what a channel may cause: directives of its operator, and caches that are written without any. */
export function lifetimesAt(
  { channel, tools, sent }: ChannelPlan,
  named: readonly CacheLifetime[],
): readonly CacheLifetime[] {
  if (named === ALL || addsDirectives(channel)) return ALL
  const model = sent?.model ?? tools?.model ?? ''
  return serviceVendor(channel) === OPENAI || WRITES_ALWAYS.test(model) ? UNSTATED : named
}

/** Models that write to their cache without a directive. */
const WRITES_ALWAYS = /gpt-(?:5\.(?:[6-9]|\d\d)|[6-9]|\d\d)/i

function addsDirectives({ override: { set, default: usual } }: ChannelEdits): boolean {
  const edits = [...set, ...usual]
  return edits.some((edit) => DIRECTIVES.some((name) => edit.some((text) => text.includes(name))))
}

// Serializers escape control characters and a few signs, never letters, digits or underscores.
function hasEscapedLetters(body: Buffer): boolean {
  for (let at = body.indexOf(ESCAPE); at >= 0; at = body.indexOf(ESCAPE, at + ESCAPE.length)) {
    const code = Number.parseInt(body.toString('latin1', at + 4, at + 6), 16)
    if (/\w/.test(String.fromCharCode(code))) return true
  }
  return false
}
