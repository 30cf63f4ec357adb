import { type Kysely, sql } from 'kysely'
import type { ColumnTypes } from './table.ts'

/** Creates the table of the calls that each node reported last; a database of one gateway needs none. */
export async function createLastReports(db: Kysely<unknown>, { isShared }: ColumnTypes): Promise<void> {
  if (isShared)
    await sql`create table if not exists last_reports (node text primary key, ids text[] not null)`.execute(
      db,
    )
}
