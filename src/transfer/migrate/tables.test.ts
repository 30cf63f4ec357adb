import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { createKysely } from '../../store/sqlite/dialect.ts'
import { migrateConnection } from '../../store/sqlite/migrate-connection.ts'
import { rowsWithKeys } from './migrate.ts'
import { COPIED_TABLES } from './tables.ts'

test('SQLite finds the rows of a whole batch of each table by their keys', async () => {
  const connection = new DatabaseSync(':memory:')
  await migrateConnection(connection)
  const db = createKysely(connection)
  for (const table of COPIED_TABLES) {
    const row = Object.fromEntries(table.key.map((column) => [column, 0]))
    const rows = Array.from({ length: table.batchSize }, () => row)
    expect(await rowsWithKeys(db, table, table.key, rows), table.name).toEqual(new Map())
  }
  connection.close()
})
