import { type Kysely, sql } from 'kysely'
import type { Database } from '../../row-types.ts'
import type { ReportProgress } from '../steps.ts'
import { whileBuildingIndexes } from './build-indexes.ts'

/** Adds the index by which the refused calls of one user are summed up without reading those of all users. */
export async function indexRefusalsByUser(db: Kysely<unknown>): Promise<void> {
  await sql`create index if not exists usage_refusals_by_user on usage_refusals (user_id, slot)`.execute(db)
}

/**
 * Builds the index of a shared database while nodes count refused calls. One that an earlier run left invalid, because it
 * was killed, is built again.
 */
export async function buildRefusalsByUser(db: Kysely<Database>, report: ReportProgress): Promise<void> {
  await whileBuildingIndexes(db, report, async (session) => {
    const { rows } = await sql<{ is_valid: boolean }>`
      select indisvalid as is_valid from pg_index
      where indexrelid = to_regclass('usage_refusals_by_user')`.execute(session)
    if (rows[0]?.is_valid) return
    report('building the index of usage_refusals by user')
    if (rows.length > 0) await sql`drop index concurrently usage_refusals_by_user`.execute(session)
    await sql`create index concurrently usage_refusals_by_user on usage_refusals (user_id, slot)`.execute(
      session,
    )
  })
}
