import { type Kysely, sql } from 'kysely'
import { TOKEN } from '../../../domain/records/token.ts'
import { addMissingColumns, type ColumnTypes } from './table.ts'

/** Adds the column that finds keys by their ends, and an index of the keys for which it is not computed yet. */
export async function addKeyEnds(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await addMissingColumns(db, TOKEN, ['key_end'], types)
  await sql`create index if not exists tokens_by_key_end on tokens (key_end)`.execute(db)
  await sql`
    create index if not exists tokens_without_key_end on tokens (id)
    where key_end = '' and key_form <> 'digest'`.execute(db)
}
