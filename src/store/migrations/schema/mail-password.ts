import { type Kysely, sql } from 'kysely'
import type { FieldChange } from '../../../domain/audit.ts'
import { asObject, type Json } from '../../../domain/json.ts'
import { AUDIT_LOG_NO_UPDATE } from './create-schema.ts'
import type { ColumnTypes } from './table.ts'

/**
 * Removes the password of the mail server from the audit log and from the recorded settings of the file, which once had it
 * as it is written there. Entries of the audit log can be changed in no other way.
 */
export async function removeMailPassword(db: Kysely<unknown>, { isShared }: ColumnTypes): Promise<void> {
  const declared = await sql<{ fields: string }>`
    select fields from declared_settings where kind = 'option' and name = 'smtp'`.execute(db)
  for (const { fields } of declared.rows) {
    const { password: _, ...others } = asObject(JSON.parse(fields) as Json)
    await sql`update declared_settings set fields = ${JSON.stringify(others)}
      where kind = 'option' and name = 'smtp'`.execute(db)
  }
  const { rows } = await sql<{ id: number; changes: string }>`
    select id, changes from audit_log where object_kind = 'option' and object_name = 'smtp'`.execute(db)
  if (rows.length === 0) return
  // On a shared database, the bank makes the trigger again at the end of the migration.
  await sql.raw(`drop trigger audit_log_no_update${isShared ? ' on audit_log' : ''}`).execute(db)
  for (const { id, changes } of rows)
    await sql`update audit_log set changes = ${JSON.stringify((JSON.parse(changes) as FieldChange[]).map(hidden))}
      where id = ${id}`.execute(db)
  if (!isShared) await sql.raw(AUDIT_LOG_NO_UPDATE).execute(db)
}

function hidden(change: FieldChange): FieldChange {
  if (change.field !== 'password') return change
  return { field: change.field, before: null, after: change.after === null ? 'removed' : 'changed' }
}
