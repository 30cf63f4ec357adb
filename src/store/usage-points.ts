import { bucketOf, LATENCY_BUCKETS } from '../domain/latency.ts'
import type { SettledCall } from './ledger-writes.ts'

/** Half an hour, the time that a row of `usage_slots` covers. */
export const SLOT_MS = 1_800_000

/** Half hours of a day (UTC). */
export const SLOTS_PER_DAY = 48

/** Columns of a point of a series, in every table of sums for them. */
export const POINT_COLUMNS = [
  'requests',
  'failed',
  'quota',
  'input_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
] as const

const buckets = (name: string): string[] =>
  Array.from({ length: LATENCY_BUCKETS }, (_, bucket) => `${name}_${bucket}`)

/** Columns of the histogram of durations of whole calls. */
export const TOTAL_COLUMNS: readonly string[] = buckets('total')

/** Columns of the histogram of times to the first byte. */
export const FIRST_COLUMNS: readonly string[] = buckets('first')

/** Columns of both histograms. */
export const LATENCY_COLUMNS: readonly string[] = [...TOTAL_COLUMNS, ...FIRST_COLUMNS]

/** Reasons of calls that count as failed, whether or not the client got a part of the response. */
export const FAILED_REASONS = ['failed', 'cut', 'crash', 'lost-node'] as const

/** Reasons of calls whose duration is that of a whole response. */
export const WHOLE_REASONS = ['complete', 'estimated'] as const

const FAILED: ReadonlySet<string> = new Set(FAILED_REASONS)
const WHOLE: ReadonlySet<string> = new Set(WHOLE_REASONS)

/** The values of `POINT_COLUMNS` and `LATENCY_COLUMNS` for one call. */
export function pointOf({ delivered, reason, quota, usage, durationMs, firstByteMs }: SettledCall): number[] {
  const point = [
    delivered ? 1 : 0,
    FAILED.has(reason) ? 1 : 0,
    quota,
    usage.input,
    usage.cacheRead,
    usage.cacheWrite5m + usage.cacheWrite1h,
    usage.output,
    usage.reasoning,
  ]
  for (let bucket = 0; bucket < 2 * LATENCY_BUCKETS; bucket += 1) point.push(0)
  if (WHOLE.has(reason)) point[POINT_COLUMNS.length + bucketOf(durationMs)]! += 1
  if (delivered && firstByteMs !== null)
    point[POINT_COLUMNS.length + LATENCY_BUCKETS + bucketOf(firstByteMs)]! += 1
  return point
}

/** A table of sums for series. */
export interface PointTable {
  readonly name: 'usage_slots' | 'usage_slot_routes' | 'usage_day_routes' | 'usage_day_keys'
  /** Primary key, the time first. */
  readonly key: readonly string[]
}

const ROUTE = ['model', 'channel', 'group_name']

/**
 * The tables of sums for series: half hours with the key of daily sums; half hours and days without users
 * and API keys; days by user and API key alone. A series reads the smallest one that has what it needs.
 */
export const POINT_TABLES: readonly PointTable[] = [
  { name: 'usage_slots', key: ['slot', 'user_id', 'token_id', ...ROUTE] },
  { name: 'usage_slot_routes', key: ['slot', ...ROUTE] },
  { name: 'usage_day_routes', key: ['day', ...ROUTE] },
  { name: 'usage_day_keys', key: ['day', 'user_id', 'token_id'] },
]
