import type { Kysely } from 'kysely'
import { TOKEN } from '../../../domain/records/token.ts'
import { addMissingColumns, type ColumnTypes } from './table.ts'

/** Adds the column with the MCP toolsets to which an API key is restricted. */
export async function addToolsets(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await addMissingColumns(db, TOKEN, ['toolsets'], types)
}
