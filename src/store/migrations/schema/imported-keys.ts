import { type Kysely, sql } from 'kysely'
import { TOKEN } from '../../../domain/records/token.ts'
import { type ColumnTypes, recordColumns, columnDefinition } from './table.ts'

const ADDED = ['key_digest', 'key_form', 'team_group'] as const

/** Adds what is known of keys that other gateways made, and an index by which it is known whether there are such keys. */
export async function addImportedKeys(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  const tables = await db.introspection.getTables()
  const present = new Set(tables.find(({ name }) => name === 'tokens')?.columns.map(({ name }) => name))
  const columns = recordColumns(TOKEN)
  // `createSchema` creates the columns of a new database.
  for (const name of ADDED.filter((one) => !present.has(one)))
    await sql
      .raw(`alter table tokens add column ${name} ${columnDefinition(columns[name] ?? '', types)}`)
      .execute(db)
  await sql`create index if not exists tokens_by_key_form on tokens (key_form) where key_form <> 'plain'`.execute(
    db,
  )
}
