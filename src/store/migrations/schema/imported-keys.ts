import { type Kysely, sql } from 'kysely'
import { TOKEN } from '../../../domain/records/token.ts'
import { addMissingColumns, type ColumnTypes } from './table.ts'

/** Adds what is known of keys that other gateways made, and an index by which it is known whether there are such keys. */
export async function addImportedKeys(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await addMissingColumns(db, TOKEN, ['key_digest', 'key_form', 'team_group'], types)
  await sql`create index if not exists tokens_by_key_form on tokens (key_form) where key_form <> 'plain'`.execute(
    db,
  )
}
