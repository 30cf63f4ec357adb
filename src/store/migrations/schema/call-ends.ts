import { type Kysely, sql } from 'kysely'

/** Adds the index that finds calls by their ends, which may be days after the times in their ids. */
export async function indexCallEnds(db: Kysely<unknown>): Promise<void> {
  await sql`create index if not exists usage_log_by_end on usage_log (ended_ms)`.execute(db)
}
