import { readdirSync, readFileSync } from 'node:fs'
import { type Kysely, sql } from 'kysely'
import { CACHE_BREAKS } from '../../domain/cache-break.ts'
import { FAILED_REASONS } from '../../domain/call-outcome.ts'
import { FAILURE_CAUSES } from '../../domain/failure-cause.ts'
import { bucketBounds, LATENCY_BUCKETS } from '../../domain/latency.ts'
import type { FieldType } from '../../domain/records/field-types.ts'
import type { Column } from '../../domain/records/record.ts'
import { SETTLEMENT_FIELDS, USAGE } from '../../domain/records/usage.ts'
import {
  LEASE_ENDING_TOKEN_COLUMNS,
  LEASE_ENDING_USER_COLUMNS,
  TOKEN_COLUMNS,
  USER_COLUMNS,
} from '../account-columns.ts'
import {
  DIMENSION_COLUMNS,
  FAILURE_CAUSE_COLUMNS,
  hasRouteColumns,
  HISTOGRAM_COLUMNS,
  HISTOGRAMS,
  NO_DIMENSION,
  SLOTS_PER_DAY,
  SUM_COLUMNS,
  USAGE_SUMS_KEY,
  SUM_KINDS,
  COMPLETE_REASONS,
} from '../sum-kinds.ts'
import { COUNT_COLUMNS, ROW_COLUMNS } from '../usage-row.ts'

/** Folder with the bank's SQL files. The build copies it next to the modules. */
const FOLDER = new URL('bank/', import.meta.url)

const differs = (columns: readonly string[]): string =>
  columns.map((name) => `new.${name} is distinct from old.${name}`).join(' or ')

/** Columns that a node's report contains for each call. */
const CALL_COLUMNS = [...USAGE.columns, ...SETTLEMENT_FIELDS.columns]

const sqlType = ({ column }: FieldType): string => (column === 'text' ? 'text' : 'bigint')

// SQL for the value of a column in a report; empty or 0 if the report leaves it out.
function statedValue({ name, type }: Column): string {
  const empty = type.column === 'text' ? "''" : '0'
  return type.isNullable ? `c.${name}` : `coalesce(c.${name}, ${empty}) as ${name}`
}

const list = (names: readonly string[]): string => names.map((name) => `'${name}'`).join(', ')

/** Lower bounds of all buckets except the first, of which `width_bucket` counts those that a value reaches. */
const BOUNDS = Array.from({ length: LATENCY_BUCKETS - 1 }, (_, bucket) => bucketBounds(bucket + 1).fromMs)

/** SQL for the bucket of a call in each of `HISTOGRAMS`; null if it is not counted there. */
const BUCKET_OF_CALL: Readonly<Record<(typeof HISTOGRAMS)[number], string>> = {
  total_latencies: `case when reason in (${list(COMPLETE_REASONS)}) then ${bucketIn('total_latencies')} end`,
  first_latencies: `case when requests > 0 then ${bucketIn('first_latencies')} end`,
}

function bucketIn(name: (typeof HISTOGRAMS)[number]): string {
  return `width_bucket(${HISTOGRAM_COLUMNS[name]}, array[${BOUNDS.join(', ')}]::bigint[])`
}

/** SQL that computes each of `SUM_COLUMNS` over a set of calls, in the same order. */
const VALUES: readonly string[] = [
  'sum(requests)',
  `count(*) filter (where reason in (${list(FAILED_REASONS)}))`,
  'sum(quota)',
  ...COUNT_COLUMNS.map((column) => `sum(${column})`),
  ...FAILURE_CAUSES.map(
    (cause) => `count(*) filter (where reason in (${list(FAILED_REASONS)}) and cause = '${cause}')`,
  ),
  `count(*) filter (where reason in (${list(FAILED_REASONS)}) and requests = 0)`,
  'sum(cache_saved)',
  'sum(cache_surcharge)',
  ...CACHE_BREAKS.map((reason) => `count(*) filter (where cache_break = '${reason}')`),
  "count(*) filter (where cache = 'hit')",
  'sum(hit_saved)',
]

/** SQL rows with the keys of the sums to which the half hours in `slots` are added: one row for each kind. */
const keysOf = (kinds: typeof SUM_KINDS): string =>
  kinds
    .map(({ kind, unit, by }) => {
      const start = unit === 'slot' ? 'slots.slot' : `slots.slot / ${SLOTS_PER_DAY}`
      const dimensions = DIMENSION_COLUMNS.map((name) => (by.has(name) ? `slots.${name}` : noDimension(name)))
      return `(${[kind, start, ...dimensions].join(', ')})`
    })
    .join(', ')

const noDimension = (name: keyof typeof NO_DIMENSION): string =>
  typeof NO_DIMENSION[name] === 'number' ? `${NO_DIMENSION[name]}::bigint` : "''::text"

const ROUTE_KINDS = SUM_KINDS.filter(hasRouteColumns)

/** SQL for the sum of a column over half hours. Causes of failures are only in sums by routes. */
const sumOfSlots = (column: string): string =>
  FAILURE_CAUSE_COLUMNS.includes(column)
    ? `case when c.kind in (${ROUTE_KINDS.map(({ kind }) => kind).join(', ')}) then sum(slots.${column}) else 0 end`
    : `sum(slots.${column})`

/** Generated parts of the bank's SQL that write `usage_sums`. */
const SUM_PARTS = {
  sum_columns: SUM_COLUMNS.join(', '),
  // Without the cast, sums have the type numeric, which takes longer to add.
  sum_of_calls: SUM_COLUMNS.map((column, index) => `(${VALUES[index]})::bigint as ${column}`).join(', '),
  sum_of_named_slots: SUM_COLUMNS.map((column) => `${sumOfSlots(column)} as ${column}`).join(', '),
  sum_updates: SUM_COLUMNS.map((column) => `${column} = s.${column} + excluded.${column}`).join(', '),
  sum_keys: keysOf(SUM_KINDS),
  route_keys: keysOf(ROUTE_KINDS),
  call_buckets: HISTOGRAMS.map((name) => `('${name}', ${BUCKET_OF_CALL[name]})`).join(', '),
  histogram_columns: HISTOGRAMS.join(', '),
  histogram_values: HISTOGRAMS.map((name) => `coalesce(h.${name}, '')`).join(', '),
  histogram_texts: HISTOGRAMS.map(
    (name) => `coalesce(string_agg(entry, '') filter (where histogram = '${name}'), '') as ${name}`,
  ).join(', '),
  histogram_updates: HISTOGRAMS.map(
    (name) => `${name} = bank_add_histograms(s.${name}, excluded.${name})`,
  ).join(', '),
  sum_dimensions: DIMENSION_COLUMNS.join(', '),
  sum_key: USAGE_SUMS_KEY.join(', '),
  sum_key_of_kinds: USAGE_SUMS_KEY.map((column) => `c.${column}`).join(', '),
  sum_key_of_rows: USAGE_SUMS_KEY.map((column) => `s.${column}`).join(', '),
} as const

/**
 * Parts of the SQL files that are generated from lists of columns. A file contains `{{name}}` where a part is
 * inserted.
 */
const PARTS: Readonly<Record<string, string>> = {
  ...SUM_PARTS,
  call_columns: CALL_COLUMNS.map(({ name, type }) => `${name} ${sqlType(type)}`).join(', '),
  call_values: CALL_COLUMNS.map(statedValue).join(', '),
  row_columns: ROW_COLUMNS.join(', '),
  user_changed: differs(USER_COLUMNS),
  user_recalled: differs(LEASE_ENDING_USER_COLUMNS),
  token_changed: differs(TOKEN_COLUMNS),
  token_recalled: differs(LEASE_ENDING_TOKEN_COLUMNS),
}

/**
 * Creates the SQL functions and triggers of the bank, or replaces those of another version. Call it in a
 * transaction. A function runs with the rights of its owner and a fixed search path. Other users can call it
 * only if they are granted that right.
 */
export async function installBank(db: Kysely<unknown>): Promise<void> {
  await sql`select set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true)`.execute(db)
  for (const file of readdirSync(FOLDER).sort()) {
    const text = readFileSync(new URL(file, FOLDER), 'utf8')
    await sql.raw(text.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => part(name))).execute(db)
  }
  await sql`
    do $$
    declare made regprocedure;
    begin
      for made in
        select oid::regprocedure from pg_proc
        where pronamespace = current_schema()::regnamespace and proname ~ '^(bank|call|alert)_' and prosecdef
      loop
        execute format('revoke all on function %s from public', made);
      end loop;
    end $$`.execute(db)
}

function part(name: string): string {
  const text = PARTS[name]
  if (text === undefined) throw new Error(`the SQL of the bank names "${name}", which is not defined`)
  return text
}
