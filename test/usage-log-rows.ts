import type { TestDatabase } from './store-engines.ts'

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
}

function logged({ id, endedMs, userId = 1, tokenId = 1, ...of }: Call): string {
  const { model = 'm', channel = 'c', group = 'default', quota = 1, reason = 'complete' } = of
  return `INSERT INTO usage_log VALUES ('${id}', ${endedMs}, ${userId}, ${tokenId}, '${model}', '${model}-2026', '${channel}',
    '${group}', 1, 2, 3, 4, 5, 6, 7, ${quota}, 'v1', 1500, 400, 1, '${reason}', 8, 9, 10, 11, 12, 13, 14, 'chat', 'asked', NULL, NULL, 0, 15, '${of.note ?? ''}')`
}

/** Writes these rows into the log, beside the store. */
export async function filled(database: Pick<TestDatabase, 'sql'>, calls: readonly Call[]): Promise<void> {
  for (const call of calls) await database.sql(logged(call))
}
