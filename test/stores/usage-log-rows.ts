import { USAGE_COUNTS } from '../../src/domain/records/usage-counts.ts'
import type { TestDatabase } from './engines.ts'
import { USAGE_OF_ALL_COUNTS } from './rows.ts'
import { addSums } from './usage-sums-rows.ts'

/** An id in the format of calls. */
export const idAt = (ms: number, last = '0'): string => {
  const hex = ms.toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-00000000000${last}`
}

/** A row of the usage log, with the columns that matter to a test. */
export interface Call {
  readonly id: string
  readonly endedMs: number
  readonly userId?: number
  readonly tokenId?: number
  readonly model?: string
  readonly channel?: string
  readonly group?: string
  readonly quota?: number
  readonly reason?: string
  readonly note?: string
  readonly session?: string
  readonly cacheBreak?: string
  readonly batch?: string
  readonly batchSaved?: number
}

/** Counts of rows that tests write, each with a different number. */
export const ROW_COUNTS: Readonly<Record<string, number>> = Object.fromEntries(
  Object.entries(USAGE_OF_ALL_COUNTS).map(([name, count]) => [
    USAGE_COUNTS[name as keyof typeof USAGE_COUNTS].column,
    count,
  ]),
)

type InsertedRow = Readonly<Record<string, string | number | null>>

/** The statement that inserts rows with these values, all of the same columns. */
export function insertion(table: string, ...rows: readonly InsertedRow[]): string {
  const values = rows.map((row) => `(${Object.values(row).map(literal).join(', ')})`)
  return `INSERT INTO ${table} (${Object.keys(rows[0] ?? {}).join(', ')}) VALUES ${values.join(', ')}`
}

function literal(value: string | number | null): string {
  return typeof value === 'string' ? `'${value}'` : String(value ?? 'NULL')
}

function logged({ id, endedMs, userId = 1, tokenId = 1, ...of }: Call): string {
  const { model = 'm', channel = 'c', group = 'default', quota = 1, reason = 'complete' } = of
  return insertion('usage_log', {
    id,
    ended_ms: endedMs,
    user_id: userId,
    token_id: tokenId,
    model,
    requested_model: 'asked',
    upstream_model: `${model}-2026`,
    channel,
    group_name: group,
    ...ROW_COUNTS,
    quota,
    price_version: 'v1',
    duration_ms: 1500,
    first_byte_ms: 400,
    stream: 1,
    reason,
    kind: 'chat',
    note: of.note ?? '',
    session: of.session ?? '',
    cache_break: of.cacheBreak ?? '',
    batch: of.batch ?? '',
    batch_saved: of.batchSaved ?? 0,
  })
}

/** The statement that inserts the sums of a day, with `ROW_COUNTS`. */
export function dayInsertion(
  day: number,
  { userId = 1, model = 'm', ...of }: { userId?: number; model?: string; requests: number; quota: number },
): string {
  return addSums('day', day, { user_id: userId, token_id: userId, model }, { ...ROW_COUNTS, ...of })
}

/** Writes these rows into the log, without the store. */
export async function filled(database: Pick<TestDatabase, 'sql'>, calls: readonly Call[]): Promise<void> {
  for (const call of calls) await database.sql(logged(call))
}
