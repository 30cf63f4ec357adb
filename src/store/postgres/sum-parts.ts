import { bucketBounds, LATENCY_BUCKETS } from '../../domain/latency.ts'
import {
  DIMENSION_COLUMNS,
  FAILED_REASONS,
  LATENCY_TIMES,
  NO_DIMENSION,
  SLOTS_PER_DAY,
  SUM_COLUMNS,
  SUM_KINDS,
  WHOLE_REASONS,
} from '../sum-kinds.ts'
import { COUNT_COLUMNS } from '../usage-row.ts'

const list = (names: readonly string[]): string => names.map((name) => `'${name}'`).join(', ')

const within = (column: string, bucket: number): string => {
  const { fromMs, beforeMs } = bucketBounds(bucket)
  return `${column} >= ${fromMs}${Number.isFinite(beforeMs) ? ` and ${column} < ${beforeMs}` : ''}`
}

const BUCKETS = Array.from({ length: LATENCY_BUCKETS }, (_, bucket) => bucket)

/** Expressions over calls in the order of `SUM_COLUMNS`. */
const VALUES: readonly string[] = [
  'sum(requests)',
  `count(*) filter (where reason in (${list(FAILED_REASONS)}))`,
  'sum(quota)',
  ...COUNT_COLUMNS.map((column) => `sum(${column})`),
  ...BUCKETS.map(
    (bucket) =>
      `count(*) filter (where reason in (${list(WHOLE_REASONS)}) and ${within(LATENCY_TIMES.total, bucket)})`,
  ),
  ...BUCKETS.map(
    (bucket) => `count(*) filter (where requests > 0 and ${within(LATENCY_TIMES.first, bucket)})`,
  ),
]

/**
 * Rows of a `values` list with the keys of all kinds to which the sums of the half hours in `slots` are
 * added.
 */
const KEYS = SUM_KINDS.map(({ kind, unit, by }) => {
  const start = unit === 'slot' ? 'slots.slot' : `slots.slot / ${SLOTS_PER_DAY}`
  const dimensions = DIMENSION_COLUMNS.map((name) =>
    by.has(name) ? `slots.${name}` : `'${NO_DIMENSION[name]}'`,
  )
  return `(${[kind, start, ...dimensions].join(', ')})`
})

/** Parts of the bank's SQL that write `usage_sums`. */
export const SUM_PARTS = {
  sum_columns: SUM_COLUMNS.join(', '),
  // Sums of integers have a type that takes longer to add again.
  sum_of_calls: SUM_COLUMNS.map((column, index) => `(${VALUES[index]})::bigint as ${column}`).join(', '),
  sum_of_slots: SUM_COLUMNS.map((column) => `sum(slots.${column})`).join(', '),
  sum_updates: SUM_COLUMNS.map((column) => `${column} = s.${column} + excluded.${column}`).join(', '),
  sum_keys: KEYS.join(', '),
} as const
