import type { Kysely } from 'kysely'
import { USAGE } from '../../../domain/records/usage.ts'
import { addMissingColumns, type ColumnTypes } from './table.ts'

/** Adds the column that says whether a call came over a WebSocket. */
export async function addTransport(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await addMissingColumns(db, USAGE, ['transport'], types)
}
