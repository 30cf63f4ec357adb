import { sql } from 'kysely'
import { type AlertThreshold, type AlertType, byType } from '../../domain/alert.ts'
import type { Db } from './operation.ts'

/** Events that receivers subscribe to. */
export interface AlertSubscriptions {
  /** Tags of the receivers. */
  readonly tags: readonly string[]
  /** Sorted by type; events without a receiver are left out. */
  readonly thresholds: readonly AlertThreshold[]
}

/** Reads the thresholds that are stored, in the order of types. */
async function alertThresholds(db: Db): Promise<AlertThreshold[]> {
  const rows = await db.selectFrom('alert_thresholds').selectAll().execute()
  return rows.map(({ type, threshold }) => ({ type: type as AlertType, threshold })).sort(byType)
}

/** Whether the database contains anything for receivers: thresholds, conditions, or waiting alerts. */
export async function hasAlertState(db: Db): Promise<boolean> {
  for (const table of ['alert_thresholds', 'alert_conditions', 'alert_outbox'] as const) {
    const row = await db.selectFrom(table).select(sql`1`.as('one')).limit(1).executeTakeFirst()
    if (row) return true
  }
  return false
}

/** Stores the subscriptions of receivers, and removes events for receivers that no longer exist. */
export async function subscribeAlerts(db: Db, { tags, thresholds }: AlertSubscriptions): Promise<void> {
  if (JSON.stringify(await alertThresholds(db)) !== JSON.stringify(thresholds)) {
    await db.deleteFrom('alert_thresholds').execute()
    if (thresholds.length > 0)
      await db
        .insertInto('alert_thresholds')
        .values([...thresholds])
        .execute()
  }
  // Without receivers, it would go unnoticed that a quota is high again.
  if (thresholds.every(({ type }) => type !== 'quota.low')) await db.deleteFrom('low_quotas_told').execute()
  // Events that are not assigned yet go to the receivers that exist at that time.
  const present = tags.length > 0 ? ['', ...tags] : []
  const removal = db.deleteFrom('alert_outbox')
  await (present.length > 0 ? removal.where('target', 'not in', present) : removal).execute()
  if (tags.length === 0) await db.deleteFrom('alert_conditions').execute()
}
