import { setTimeout as delay } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { MAINTENANCE_LOCK } from '../../postgres/maintain-usage-log.ts'
import type { Database } from '../../row-types.ts'
import type { ReportProgress } from '../steps.ts'

const RETRY_MS = 500

/** Builds indexes of a shared database in one session, while no other session builds some, or makes or drops partitions. */
export async function whileBuildingIndexes(
  db: Kysely<Database>,
  report: ReportProgress,
  build: (session: Kysely<Database>) => Promise<void>,
): Promise<void> {
  await db.connection().execute(async (session) => {
    // If this process is killed, its session keeps the lock until the server has built the index.
    await lockMaintenance(session, report)
    try {
      await build(session)
    } finally {
      // A session that was lost has no lock.
      await sql`select pg_advisory_unlock(${MAINTENANCE_LOCK})`.execute(session).catch(() => {})
    }
  })
}

/**
 * Waits for the lock. It asks again and again, because a statement that waits would be waited for by the building of an
 * index elsewhere, and so for ever.
 */
async function lockMaintenance(session: Kysely<Database>, report: ReportProgress): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const { rows } = await sql<{ mine: boolean }>`
      select pg_try_advisory_lock(${MAINTENANCE_LOCK}) as mine`.execute(session)
    if (rows[0]?.mine) return
    if (attempt === 2) report('waiting for another session that works on the partitions of usage_log')
    await delay(RETRY_MS)
  }
}
