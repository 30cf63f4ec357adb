import { connect, type Socket } from 'node:net'
import { type Connection, createConnection, type QueryError } from 'mysql2'
import {
  clearPasswordError,
  type MysqlAddress,
  type ServerTrust,
  type SourceDatabase,
  type SourceRow,
} from './source.ts'
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

const CONNECT_MS = 10_000
const TABLE = 'BASE TABLE'

/**
 * Opens the MySQL or MariaDB database of another gateway, which may be running. The database is not trusted:
 * only plain tables are read, in a read-only transaction and within `limits`; its server gets no local files.
 * Rejects with a sentence for the operator.
 */
export async function openMysqlSource(
  place: MysqlAddress,
  { sendsClearPassword = false, limits = READ_LIMITS }: ServerTrust & { readonly limits?: ReadLimits } = {},
): Promise<SourceDatabase> {
  const socket = connect(place.port, place.host)
  const connection = opened(place, socket, sendsClearPassword)
  const failure = Promise.withResolvers<never>()
  failure.promise.catch(() => {})
  // If the connection fails, the driver reports it here, and does not reject pending statements.
  connection.on('error', (error: QueryError) => failure.reject(sentenceOf(error)))
  const read = new ReadMeter(limits)
  const stop = (): void => connection.destroy()
  const wire = new ConnectionReadLimits(socket, limits, stop)
  const query = (
    table: string,
    text: string,
    values: readonly string[] = [],
  ): Promise<readonly SourceRow[]> => {
    const answer = rowsOf(connection, countRowsOnWire(read.table(table), wire), text, values)
    return wire.answer(table, Promise.race([answer, failure.promise]))
  }
  const accepted = new Promise<void>((resolve) => connection.once('connect', () => resolve()))
  try {
    await wire.greeting(Promise.race([accepted, failure.promise]))
    await query('', 'set session transaction isolation level repeatable read')
    await query('', 'start transaction with consistent snapshot, read only')
  } catch (error) {
    stop()
    throw error
  }
  return {
    async columnsOf(table) {
      const rows = await query(
        table,
        `select t.table_type as kind, c.column_name as name
         from information_schema.tables t
         join information_schema.columns c on c.table_schema = t.table_schema and c.table_name = t.table_name
         where t.table_schema = ? and t.table_name = ?
         order by c.ordinal_position`,
        [place.database, table],
      )
      const kind = (rows[0]?.['kind'] as string | undefined) ?? TABLE
      if (kind !== TABLE) throw notATableError(table, kind.toLowerCase())
      return rows.map((row) => String(row['name']))
    },
    rows: (table, columns) =>
      query(
        table,
        `select ${columns.map(quoted).join(', ')} from ${quoted(table)}` +
          (columns.includes('id') ? ' order by id' : ''),
      ),
    async tables() {
      const rows = await query(
        '',
        `select table_name as name from information_schema.tables
         where table_schema = ? and table_type = '${TABLE}' order by 1 limit ${MAX_TABLES}`,
        [place.database],
      )
      return rows.map(({ name }) => String(name))
    },
    async countRows(table, max) {
      const some = `select 1 from ${quoted(table)} limit ${max + 1}`
      const [row] = await query(table, `select count(*) as number from (${some}) as counted`)
      return Number(row?.['number'])
    },
    close: () =>
      new Promise((resolve) => {
        if (socket.destroyed) return resolve()
        socket.once('close', () => resolve())
        connection.end()
      }),
  }
}

function opened(
  { user, password, database, host, tls }: MysqlAddress,
  socket: Socket,
  sendsClearPassword: boolean,
): Connection {
  return createConnection({
    stream: () => socket,
    host,
    user,
    password,
    database,
    connectTimeout: CONNECT_MS,
    charset: 'utf8mb4',
    // Values remain texts; `RowReader` checks and converts them.
    typeCast: (field) => field.string('utf8'),
    // Without this, the driver refuses a server that asks for the password in clear.
    enableCleartextPlugin: sendsClearPassword || tls !== 'none',
    ...(tls !== 'none' && { ssl: { rejectUnauthorized: tls === 'verified' } }),
  })
}

function quoted(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``
}

/**
 * Runs a statement and collects its rows. Calls `count` with the size of each row; if `count` throws, closes
 * the connection.
 */
function rowsOf(
  connection: Connection,
  count: (bytes: number) => void,
  text: string,
  values: readonly string[],
): Promise<readonly SourceRow[]> {
  return new Promise((resolve, reject) => {
    const rows: SourceRow[] = []
    const query = connection.query(text, [...values])
    query.on('result', (row: SourceRow) => {
      // For a statement that returns no rows, the driver passes a header object instead of a row.
      if (row.constructor.name === 'ResultSetHeader') return
      try {
        count(rowCharacters(row))
        rows.push(row)
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)))
        connection.destroy()
      }
    })
    query.on('end', () => resolve(rows))
    query.on('error', (error: QueryError) => reject(sentenceOf(error)))
  })
}

function sentenceOf(error: QueryError): Error {
  switch (error.code) {
    case 'ECONNREFUSED':
    case 'ENOTFOUND':
    case 'ETIMEDOUT':
    case 'EAI_AGAIN':
      return new Error(`the database cannot be reached: ${error.message}`)
    case 'MYSQL_CLEAR_PASSWORD_NOT_ENABLED':
      return clearPasswordError('?tls=true')
    default:
      return new Error(`the database refuses: ${error.message}`)
  }
}
