import { type Kysely, sql } from 'kysely'
import { USER } from '../../../domain/records/user.ts'
import { ALERT_QUOTA_LOW } from './create-schema.ts'
import { addMissingColumns, type ColumnTypes } from './table.ts'

/** Adds the column of unlimited users, for whom no alert of a low quota is added. */
export async function addUnlimitedUsers(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await addMissingColumns(db, USER, ['unlimited_quota'], types)
  // The triggers of a shared database are made at each start.
  if (types.isShared) return
  await sql`drop trigger alert_quota_low`.execute(db)
  await sql.raw(ALERT_QUOTA_LOW).execute(db)
}
