import { type Kysely, sql } from 'kysely'
import type { ColumnTypes } from '../column-types.ts'
import { ACCOUNT_TABLES } from './account-tables.ts'
import { BANK_TABLES } from './bank-tables.ts'
import { KEPT_TABLES } from './kept-tables.ts'
import { SETTING_TABLES } from './setting-tables.ts'
import { SQLITE_TRIGGERS } from './sqlite-triggers.ts'
import { createTables } from './table.ts'
import { createUsageTables } from './usage-tables.ts'

/** Creates the schema of version 0.1.0, as `schema.ts` describes it. */
export async function createSchema(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await createTables(db, [...ACCOUNT_TABLES, ...KEPT_TABLES, ...SETTING_TABLES], types)
  await createUsageTables(db, types)
  const statements = types.isShared ? BANK_TABLES : SQLITE_TRIGGERS
  for (const statement of statements) await sql.raw(statement).execute(db)
}
