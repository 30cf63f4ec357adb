import { readCacheControl } from '../cache-marks.ts'
import type { CacheMark, CacheLifetime } from '../conversation.ts'

/** The value of `cache_control` in a messages request. */
interface CacheControl {
  readonly type: 'ephemeral'
  readonly ttl?: CacheLifetime
}

/** Reads the cache mark of a block or a tool, as an object to spread into a part. */
export function readCacheMark(
  holder: Readonly<Record<string, unknown>>,
  path: string,
): { cache?: CacheMark } {
  const given = holder['cache_control']
  if (given === undefined || given === null) return {}
  return { cache: readCacheControl(given, `${path}.cache_control`) }
}

/** Writes a cache mark, as an object to spread into a block or a tool. */
export function writeCacheMark(cache: CacheMark | undefined): { cache_control?: CacheControl } {
  if (!cache) return {}
  return { cache_control: { type: 'ephemeral', ...(cache.ttl !== undefined && { ttl: cache.ttl }) } }
}
