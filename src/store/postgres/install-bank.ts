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
  LATENCY_SOURCE_COLUMNS,
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

const within = (column: string, bucket: number): string => {
  const { fromMs, beforeMs } = bucketBounds(bucket)
  return `${column} >= ${fromMs}${Number.isFinite(beforeMs) ? ` and ${column} < ${beforeMs}` : ''}`
}

const BUCKETS = Array.from({ length: LATENCY_BUCKETS }, (_, bucket) => bucket)

/** SQL that computes each of `SUM_COLUMNS` over a set of calls, in the same order. */
const VALUES: readonly string[] = [
  'sum(requests)',
  `count(*) filter (where reason in (${list(FAILED_REASONS)}))`,
  'sum(quota)',
  ...COUNT_COLUMNS.map((column) => `sum(${column})`),
  ...BUCKETS.map(
    (bucket) =>
      `count(*) filter (where reason in (${list(COMPLETE_REASONS)}) and ${within(LATENCY_SOURCE_COLUMNS.total, bucket)})`,
  ),
  ...BUCKETS.map(
    (bucket) => `count(*) filter (where requests > 0 and ${within(LATENCY_SOURCE_COLUMNS.first, bucket)})`,
  ),
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

/** SQL rows with the keys of all sums to which the half hours in `slots` are added: one row for each kind. */
const KEYS = SUM_KINDS.map(({ kind, unit, by }) => {
  const start = unit === 'slot' ? 'slots.slot' : `slots.slot / ${SLOTS_PER_DAY}`
  const dimensions = DIMENSION_COLUMNS.map((name) =>
    by.has(name) ? `slots.${name}` : `'${NO_DIMENSION[name]}'`,
  )
  return `(${[kind, start, ...dimensions].join(', ')})`
})

/** Generated parts of the bank's SQL that write `usage_sums`. */
const SUM_PARTS = {
  sum_columns: SUM_COLUMNS.join(', '),
  // Without the cast, sums have the type numeric, which takes longer to add.
  sum_of_calls: SUM_COLUMNS.map((column, index) => `(${VALUES[index]})::bigint as ${column}`).join(', '),
  sum_of_slots: SUM_COLUMNS.map((column) => `sum(slots.${column})`).join(', '),
  sum_updates: SUM_COLUMNS.map((column) => `${column} = s.${column} + excluded.${column}`).join(', '),
  sum_keys: KEYS.join(', '),
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
