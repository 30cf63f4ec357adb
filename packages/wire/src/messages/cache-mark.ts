import type { CacheMark, CacheLifetime } from '../conversation.ts'
import { refuseField } from '../field-check.ts'
import { asRecord } from '../json/record.ts'

/** The value of `cache_control` in a messages request. */
interface CacheControl {
  readonly type: 'ephemeral'
  readonly ttl?: CacheLifetime
}

/**
 * Reads the cache mark of a block or a tool, as an object to spread into a part. Throws `invalid_request` for
 * an unknown type.
 */
export function readCacheMark(
  holder: Readonly<Record<string, unknown>>,
  path: string,
): { cache?: CacheMark } {
  const given = holder['cache_control']
  if (given === undefined || given === null) return {}
  const mark = asRecord(given)
  const ttl = mark?.['ttl'] ?? undefined
  if (mark?.['type'] !== 'ephemeral')
    refuseField(`${path}.cache_control.type`, `'ephemeral'`, 'something else')
  if (ttl !== undefined && ttl !== '5m' && ttl !== '1h')
    refuseField(`${path}.cache_control.ttl`, `'5m' or '1h'`, 'something else')
  return { cache: { ttl } }
}

/** Writes a cache mark, as an object to spread into a block or a tool. */
export function writeCacheMark(cache: CacheMark | undefined): { cache_control?: CacheControl } {
  if (!cache) return {}
  return { cache_control: { type: 'ephemeral', ...(cache.ttl !== undefined && { ttl: cache.ttl }) } }
}
