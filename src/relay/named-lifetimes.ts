import { hasBytesAt, type ScannedObject } from '@sluice/wire/json/scanned-object'
import type { CacheLifetime } from '@sluice/wire/reported-usage'
import { serviceVendor } from '../domain/price-data/index.ts'
import { OPENAI } from '../domain/price-data/openai.ts'
import type { ChannelEdits } from '../domain/records/channel.ts'
import type { ChannelPlan } from './request-stages.ts'

/** Beginnings of the names of cache directives. */
const DIRECTIVES = ['cache_control', 'prompt_cache_', 'cachePoint'] as const
const BEGINNINGS = DIRECTIVES.map((name) => Buffer.from(`"${name}`))
const LONG_LIFETIMES = ['"1h"', '"12h"', '"24h"'].map((text) => Buffer.from(text))

const NONE: readonly CacheLifetime[] = []
/** Lifetimes that a directive without a lifetime may have. */
const UNSTATED: readonly CacheLifetime[] = ['5m', '30m']
/** All lifetimes. */
export const ALL_LIFETIMES: readonly CacheLifetime[] = ['5m', '30m', '1h', '12h']

/** Strings above this size are texts, not names or lifetimes. */
const MAX_NAME_BYTES = 100
const QUOTE = 0x22
const BACKSLASH = 0x5c
/** First bytes of the names and lifetimes above, as they are or as an escape. */
const FIRST_BYTES = new Set([...BEGINNINGS, ...LONG_LIFETIMES].map((one) => one[1] as number)).add(BACKSLASH)

/**
 * Lifetimes for which the cache directives of a request may make a provider write to its cache. All of them if
 * names may be spelled with escapes.
 */
export function namedLifetimes({ bytes, tape }: ScannedObject): readonly CacheLifetime[] {
  let isAny = false
  let isLong = false
  for (let node = 0; node < tape.length; node += 3) {
    const start = tape[node] as number
    const end = tape[node + 1] as number
    if (bytes[start] !== QUOTE || end - start > MAX_NAME_BYTES) continue
    if (!FIRST_BYTES.has(bytes[start + 1] as number)) continue
    if (hasEscapedLetter(bytes, start, end)) return ALL_LIFETIMES
    isAny ||= BEGINNINGS.some((one) => hasBytesAt(bytes, start, one))
    isLong ||= end - start <= 5 && LONG_LIFETIMES.some((one) => hasBytesAt(bytes, start, one))
  }
  if (!isAny) return NONE
  return isLong ? ALL_LIFETIMES : UNSTATED
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

// Serializers escape control characters and a few signs, never letters, digits or underscores.
function hasEscapedLetter(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start + 1; at < end - 1; at++) {
    if (bytes[at] !== BACKSLASH) continue
    at++
    if (bytes[at] !== LETTER_U) continue
    const code = Number.parseInt(bytes.toString('latin1', at + 1, at + 5), 16)
    if (/\w/.test(String.fromCharCode(code))) return true
  }
  return false
}

const LETTER_U = 0x75
