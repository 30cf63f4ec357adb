import { BREAKPOINT, readBreakpoint, writeBreakpoint } from '../cache-marks.ts'
import type { Cache } from '../conversation.ts'
import { fieldsAt, type Fields, nullToUndefined, enumAt } from '../field.ts'

const TYPES: ReadonlyMap<string, true> = new Map([['ephemeral', true]])
const TTLS: ReadonlyMap<string, '5m' | '1h'> = new Map([
  ['5m', '5m'],
  ['1h', '1h'],
])

/**
 * Reads the `cache_control` or the breakpoint of a part, a message or a tool, as an object to spread into a
 * part.
 */
export function readCacheDirective(fields: Fields, path: string): { cache?: Cache } {
  const value = nullToUndefined(fields['cache_control'])
  if (value === undefined) return readBreakpoint(fields)
  const mark = fieldsAt(value, `${path}.cache_control`)
  enumAt(TYPES, mark['type'], `${path}.cache_control.type`)
  const ttl = nullToUndefined(mark['ttl'])
  return { cache: { ttl: ttl === undefined ? undefined : enumAt(TTLS, ttl, `${path}.cache_control.ttl`) } }
}

/** Reports whether a part has a cache mark. */
export function hasCacheMark(part: Fields): boolean {
  return 'cache_control' in part || BREAKPOINT in part
}

/** Renders the cache mark for chat, as an object to spread. */
export function cacheControl(cache: Cache | undefined): Fields {
  if (!cache) return {}
  if (cache.field === BREAKPOINT) return writeBreakpoint(cache)
  return { cache_control: { type: 'ephemeral', ...(cache.ttl && { ttl: cache.ttl }) } }
}
