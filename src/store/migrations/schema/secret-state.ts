import type { Kysely } from 'kysely'
import { TABLES } from '../../tables.ts'
import { type ColumnTypes, createTables } from './table.ts'

/** Creates the tables of a changed secret, unless `createSchema` has just created them with all others. */
export async function createSecretState(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  const present = new Set((await db.introspection.getTables()).map(({ name }) => name))
  const wanted = (['secret_state', 'node_secrets'] as const).map((name) => ({ name, ...TABLES[name] }))
  await createTables(
    db,
    wanted.filter(({ name }) => !present.has(name)),
    types,
  )
}
