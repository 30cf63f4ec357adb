import type { EventEmitter } from 'node:events'
import { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { Client, Query } from 'pg'
import {
  MAX_TABLES,
  notATableError,
  countRowsOnWire,
  READ_LIMITS,
  type ReadLimits,
  ReadMeter,
  rowCharacters,
  ConnectionReadLimits,
} from './read-limits.ts'
import type { PostgresConnections } from './readers.ts'
import { clearPasswordError, type ServerTrust, type SourceDatabase, type SourceRow } from './source.ts'

const CONNECT_MS = 10_000

/** Names of relations that are not plain tables, by `pg_class.relkind`. */
const RELATION_KINDS: ReadonlyMap<unknown, string> = new Map([
  ['v', 'view'],
  ['m', 'materialized view'],
  ['f', 'foreign table'],
  ['p', 'partitioned table'],
])

/**
 * Opens the PostgreSQL database of another gateway, which may be running. The database is not trusted: only
 * plain tables are read, within `limits`. Tables with row-level policies are not read, because a policy runs
 * code of the table's owner. Rejects with a sentence for the operator.
 */
export async function openPostgresSource(
  url: string,
  connections: PostgresConnections,
  { sendsClearPassword = false, limits = READ_LIMITS }: ServerTrust & { readonly limits?: ReadLimits } = {},
): Promise<SourceDatabase> {
  const connect = async (
    connectionString: string,
    ssl: ConnectionOptions | false,
  ): Promise<LimitedConnection> => {
    const socket = new Socket()
    const client = new Client({
      connectionString,
      ssl,
      connectionTimeoutMillis: CONNECT_MS,
      application_name: 'sluice import',
      stream: () => socket,
      // Values remain texts; `RowReader` checks and converts them.
      types: { getTypeParser: () => (text: string) => text },
    })
    client.on('error', () => {})
    if (!sendsClearPassword) refuseClearPassword(client)
    const stop = (): void => void socket.destroy()
    const wire = new ConnectionReadLimits(socket, limits, stop)
    try {
      await wire.greeting(client.connect())
      return { client, wire, stop }
    } catch (error) {
      await client.end().catch(() => {})
      throw error
    }
  }
  const { connected, start } = await connections.open(url, limits.ms, connect)
  const { client, wire, stop } = connected
  const read = new ReadMeter(limits)
  const query = (
    table: string,
    text: string,
    values: readonly string[] = [],
  ): Promise<readonly SourceRow[]> =>
    wire.answer(
      table,
      rowsOf(client, stop, countRowsOnWire(read.table(table), wire), text, values).catch((error: unknown) => {
        throw connections.explain(error)
      }),
    )
  try {
    await query('', 'begin isolation level repeatable read read only')
    await query('', ['set local row_security = off', start ?? ''].join('; '))
  } catch (error) {
    await client.end().catch(() => {})
    throw error
  }
  return {
    async columnsOf(table) {
      const rows = await query(
        table,
        `select c.relkind::pg_catalog.text as kind, a.attname::pg_catalog.text as name
         from pg_catalog.pg_class c
         join pg_catalog.pg_namespace n on n.oid = c.relnamespace
         join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
         where n.nspname = pg_catalog.current_schema() and c.relname = $1
         order by a.attnum`,
        [table],
      )
      const kind = rows[0]?.['kind'] ?? 'r'
      if (kind !== 'r') throw notATableError(table, RELATION_KINDS.get(kind) ?? 'thing of another kind')
      return rows.map((row) => String(row['name']))
    },
    rows: (table, columns) =>
      query(
        table,
        `select ${columns.map((name) => client.escapeIdentifier(name)).join(', ')} from only ${client.escapeIdentifier(table)}` +
          (columns.includes('id') ? ' order by id' : ''),
      ),
    // Omits tables that have policies or that this user may not read, because reading one would abort the
    // transaction.
    async tables() {
      const rows = await query(
        '',
        `select c.relname::pg_catalog.text as name
         from pg_catalog.pg_class c
         join pg_catalog.pg_namespace n on n.oid = c.relnamespace
         where n.nspname = pg_catalog.current_schema() and c.relkind = 'r' and not c.relrowsecurity
           and pg_catalog.has_table_privilege(c.oid, 'select')
         order by 1 limit ${MAX_TABLES}`,
      )
      return rows.map(({ name }) => String(name))
    },
    async countRows(table, max) {
      const some = `select 1 from only ${client.escapeIdentifier(table)} limit ${max + 1}`
      const [row] = await query(table, `select pg_catalog.count(*) as number from (${some}) as counted`)
      return Number(row?.['number'])
    },
    close: () => client.end(),
  }
}

/** A connection whose answers are limited in size and time; `stop` breaks it. */
interface LimitedConnection {
  readonly client: Client
  readonly wire: ConnectionReadLimits
  readonly stop: () => void
}

/** The part of the driver's client that sends the password. */
interface PasswordSender {
  password: unknown
  readonly host: string
  readonly connection: EventEmitter & { readonly stream: { readonly encrypted?: boolean } }
}

/** Makes the driver refuse a server that asks for the password in clear over an unencrypted connection. */
function refuseClearPassword(client: Client): void {
  const sender = client as unknown as PasswordSender
  // This listener is called before that of the driver, which then asks the function for the password.
  sender.connection.on('authenticationCleartextPassword', () => {
    // A socket in a folder of this machine carries nothing over a network.
    if (sender.connection.stream.encrypted === true || sender.host.startsWith('/')) return
    sender.password = () => Promise.reject(clearPasswordError('?sslmode=require'))
  })
}

/**
 * Runs a statement and collects its rows. Calls `count` with the size of each row; if `count` throws, calls
 * `stop`.
 */
function rowsOf(
  client: Client,
  stop: () => void,
  count: (bytes: number) => void,
  text: string,
  values: readonly string[],
): Promise<readonly SourceRow[]> {
  return new Promise((resolve, reject) => {
    const rows: SourceRow[] = []
    const query = new Query<Record<string, unknown>>({ text, values: [...values] })
    query.on('row', (row) => {
      try {
        count(rowCharacters(row))
        rows.push(row)
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)))
        stop()
      }
    })
    query.on('end', () => resolve(rows))
    query.on('error', reject)
    client.query(query)
  })
}
