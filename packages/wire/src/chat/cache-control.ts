import { CACHE_BREAKPOINT_FIELD, readBreakpoint, readCacheControl, writeBreakpoint } from '../cache-marks.ts'
import type { CacheMark } from '../conversation.ts'
import { type Fields, nullToUndefined } from '../field.ts'

/**
 * Reads the `cache_control` or the breakpoint of a part, a message or a tool, as an object to spread into a
 * part.
 */
export function readCacheDirective(fields: Fields, path: string): { cache?: CacheMark } {
  const value = nullToUndefined(fields['cache_control'])
  if (value === undefined) return readBreakpoint(fields)
  return { cache: readCacheControl(value, `${path}.cache_control`) }
}

/** Reports whether a part has a cache mark. */
export function hasCacheMark(part: Fields): boolean {
  return 'cache_control' in part || CACHE_BREAKPOINT_FIELD in part
}

/** Renders the cache mark for chat, as an object to spread. */
export function writeCacheDirective(cache: CacheMark | undefined): Fields {
  if (!cache) return {}
  if (cache.field === CACHE_BREAKPOINT_FIELD) return writeBreakpoint(cache)
  return { cache_control: { type: 'ephemeral', ...(cache.ttl && { ttl: cache.ttl }) } }
}
