import type { Db } from './operation.ts'

/** Events that receivers want to be told of. */
export interface AlertSubscriptions {
  /** Tags of the receivers. */
  readonly tags: readonly string[]
  /** Quota units below which a user's quota is low; null if nobody is told. */
  readonly quotaLow: number | null
}

/** Reads the threshold that is stored; null if there is none. */
export async function alertThreshold(db: Db): Promise<number | null> {
  const row = await db
    .selectFrom('alert_thresholds')
    .select('threshold')
    .where('type', '=', 'quota.low')
    .executeTakeFirst()
  return row?.threshold ?? null
}

/** Stores what receivers want to be told, and removes what waits for receivers that are gone. */
export async function subscribeAlerts(db: Db, { tags, quotaLow }: AlertSubscriptions): Promise<void> {
  if ((await alertThreshold(db)) !== quotaLow) {
    await db.deleteFrom('alert_thresholds').where('type', '=', 'quota.low').execute()
    if (quotaLow !== null)
      await db.insertInto('alert_thresholds').values({ type: 'quota.low', threshold: quotaLow }).execute()
  }
  // Events that are not spread yet are for the receivers that there are then.
  const present = tags.length > 0 ? ['', ...tags] : []
  const removal = db.deleteFrom('alert_outbox')
  await (present.length > 0 ? removal.where('target', 'not in', present) : removal).execute()
  if (tags.length === 0) await db.deleteFrom('alert_conditions').execute()
}
