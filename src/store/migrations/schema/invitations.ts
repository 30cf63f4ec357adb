import type { Kysely } from 'kysely'
import { TABLES } from '../../tables.ts'
import { type ColumnTypes, createTables } from './table.ts'

/** Creates the table of invitations, unless `createSchema` has just created it with all others. */
export async function createInvitations(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  const present = await db.introspection.getTables()
  if (present.some(({ name }) => name === 'invitations')) return
  await createTables(db, [{ name: 'invitations', ...TABLES.invitations }], types)
}
