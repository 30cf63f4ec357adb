import { Client } from 'pg'
import { blamed } from '../../store/postgres/failure.ts'
import type { SourceDatabase, SourceRow } from './source.ts'

const CONNECT_MS = 10_000
const STATEMENT_MS = 600_000

/** The database of another gateway on PostgreSQL, which may run meanwhile. Rejects with a sentence for the operator. */
export async function openPostgresSource(url: string): Promise<SourceDatabase> {
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: STATEMENT_MS,
    application_name: 'sluice import',
    // All of it as texts, as it is checked here and nowhere before.
    types: { getTypeParser: () => (text: string) => text },
  })
  client.on('error', () => {})
  const ask = async (statement: string, values: readonly unknown[] = []): Promise<SourceRow[]> => {
    try {
      return (await client.query<Record<string, unknown>>(statement, [...values])).rows
    } catch (error) {
      throw blamed(error)
    }
  }
  try {
    await client.connect()
    await ask('begin isolation level repeatable read read only')
  } catch (error) {
    await client.end().catch(() => {})
    throw blamed(error)
  }
  return {
    async columnsOf(table) {
      const rows = await ask(
        'select column_name::text as name from information_schema.columns where table_schema = current_schema() and table_name = $1',
        [table],
      )
      return rows.map((row) => String(row['name']))
    },
    rows: (table, columns) =>
      ask(
        `select ${columns.map((name) => client.escapeIdentifier(name)).join(', ')} from ${client.escapeIdentifier(table)}` +
          (columns.includes('id') ? ' order by id' : ''),
      ),
    close: () => client.end(),
  }
}
