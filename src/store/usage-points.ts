import { bucketOf, LATENCY_BUCKETS } from '../domain/latency.ts'
import { writtenTokens } from '../domain/usage.ts'
import type { SettledCall } from '../domain/records/usage.ts'

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

/** The time of a call that each histogram is of. */
export const LATENCY_TIMES = { total: 'duration_ms', first: 'first_byte_ms' } as const

/** Columns of both histograms. */
export const LATENCY_COLUMNS: readonly string[] = [...TOTAL_COLUMNS, ...FIRST_COLUMNS]

/** Reasons of calls that count as failed, whether or not the client got a part of the response. */
export const FAILED_REASONS = ['failed', 'cut', 'crash', 'lost-node'] as const

/** Reasons of calls whose duration is that of a whole response. */
export const WHOLE_REASONS = ['complete', 'estimated'] as const

const FAILED: ReadonlySet<string> = new Set(FAILED_REASONS)
const WHOLE: ReadonlySet<string> = new Set(WHOLE_REASONS)

/** Whether a call with this reason counts as failed. */
export function isFailed(reason: string): boolean {
  return FAILED.has(reason)
}

/** Values of a call that are summed up. */
export type PointCall = Pick<
  SettledCall,
  'delivered' | 'quota' | 'usage' | (typeof LATENCY_TIMES)[keyof typeof LATENCY_TIMES]
> & {
  readonly reason: string
}

/** Adds a call to sums in the order of `POINT_COLUMNS` and `LATENCY_COLUMNS`. */
export function addPoint(
  sums: number[],
  { delivered, reason, quota, usage, duration_ms, first_byte_ms = null }: PointCall,
): void {
  if (delivered) sums[0]! += 1
  if (FAILED.has(reason)) sums[1]! += 1
  sums[2]! += quota
  sums[3]! += usage.input
  sums[4]! += usage.cacheRead
  sums[5]! += writtenTokens(usage)
  sums[6]! += usage.output
  sums[7]! += usage.reasoning
  if (WHOLE.has(reason)) sums[TOTAL_START + bucketOf(duration_ms)]! += 1
  if (delivered && first_byte_ms !== null) sums[FIRST_START + bucketOf(first_byte_ms)]! += 1
}

const TOTAL_START = POINT_COLUMNS.length
const FIRST_START = TOTAL_START + LATENCY_BUCKETS

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
