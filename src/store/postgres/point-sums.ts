import { bucketBounds, LATENCY_BUCKETS } from '../../domain/latency.ts'
import {
  FAILED_REASONS,
  LATENCY_COLUMNS,
  LATENCY_TIMES,
  POINT_COLUMNS,
  POINT_TABLES,
  WHOLE_REASONS,
} from '../usage-points.ts'

const list = (names: readonly string[]): string => names.map((name) => `'${name}'`).join(', ')

const within = (column: string, bucket: number): string => {
  const { fromMs, beforeMs } = bucketBounds(bucket)
  return `${column} >= ${fromMs}${Number.isFinite(beforeMs) ? ` and ${column} < ${beforeMs}` : ''}`
}

const BUCKETS = Array.from({ length: LATENCY_BUCKETS }, (_, bucket) => bucket)

const VALUES: readonly string[] = [
  'sum(requests)',
  `count(*) filter (where reason in (${list(FAILED_REASONS)}))`,
  'sum(quota)',
  'sum(input_tokens)',
  'sum(cache_read_tokens)',
  'sum(cache_write_5m_tokens + cache_write_1h_tokens)',
  'sum(output_tokens)',
  'sum(reasoning_tokens)',
  ...BUCKETS.map(
    (bucket) =>
      `count(*) filter (where reason in (${list(WHOLE_REASONS)}) and ${within(LATENCY_TIMES.total, bucket)})`,
  ),
  ...BUCKETS.map(
    (bucket) => `count(*) filter (where requests > 0 and ${within(LATENCY_TIMES.first, bucket)})`,
  ),
]

const TIMES: Readonly<Record<string, string>> = { slot: 'ended_ms / 1800000', day: 'ended_ms / 86400000' }

/** Returns the parts of a `with` statement that add the calls of `source` to each of `POINT_TABLES`. */
export function pointSums(source: string): string {
  return POINT_TABLES.map(({ name, key }) => {
    const columns = [...POINT_COLUMNS, ...LATENCY_COLUMNS]
    const places = key.map((_, index) => index + 1).join(', ')
    return `sums_${name} as (
    insert into ${name} as s (${[...key, ...columns].join(', ')})
    select ${[...key.map((column) => TIMES[column] ?? column), ...VALUES].join(', ')}
    from ${source} group by ${places} order by ${places}
    on conflict (${key.join(', ')}) do update set
      ${columns.map((column) => `${column} = s.${column} + excluded.${column}`).join(', ')}
  )`
  }).join(', ')
}
