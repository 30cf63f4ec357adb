import type { PostgresConnections } from './readers.ts'

/** An unchecked row of another gateway's database. */
export type SourceRow = Readonly<Record<string, unknown>>

/** A read-only snapshot of another gateway's database. */
export interface SourceDatabase {
  /** Names of a table's columns; empty if there is no such table. */
  columnsOf(table: string): Promise<readonly string[]>
  /** Reads the given columns of all rows, ordered by `id` if that is one of the columns. */
  rows(table: string, columns: readonly string[]): Promise<readonly SourceRow[]>
  /** Names of the plain tables that can be read, sorted; at most `MAX_TABLES`. */
  tables(): Promise<readonly string[]>
  /** Counts the rows of a plain table, but not further than `max` + 1. */
  countRows(table: string, max: number): Promise<number>
  close(): Promise<void>
}

/** What a source's server is trusted with. */
export interface ServerTrust {
  /** Whether it gets the password in clear if it asks for it over an unencrypted connection. */
  readonly sendsClearPassword?: boolean | undefined
}

/** The error of a server that asks for the password in clear over an unencrypted connection. */
export function clearPasswordError(encrypted: string): Error {
  return new Error(
    `the server asks for the password in clear, and the connection is not encrypted: add ${encrypted} to the address, or state --insecure`,
  )
}

/**
 * Opens the database at a URL; undefined if `place` is a file path. Rejects with a sentence for the operator.
 */
export async function openServer(
  place: string,
  { postgres, sendsClearPassword = false }: ServerTrust & { readonly postgres: PostgresConnections },
): Promise<SourceDatabase | undefined> {
  if (postgres.isUrl(place)) {
    const { openPostgresSource } = await import('./postgres-source.ts')
    return openPostgresSource(place, postgres, { sendsClearPassword })
  }
  const address = mysqlAddress(place)
  if (address) {
    const { openMysqlSource } = await import('./mysql-source.ts')
    return openMysqlSource(address, { sendsClearPassword })
  }
  if (/^[a-z]+:\/\//i.test(place)) {
    throw new Error(
      'expected a SQLite file, or a URL such as postgres://user@host/database or mysql://user@host/database',
    )
  }
  return undefined
}

/** Address of a MySQL or MariaDB database. */
export interface MysqlAddress {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  readonly database: string
  /** TLS: none, with a verified certificate, or with an unverified certificate. */
  readonly tls: 'none' | 'verified' | 'unverified'
}

const DEFAULT_PORT = 3306

/** Form of SQL_DSN in one-api and new-api: `user:password@tcp(host:port)/database?parameters`. */
const DSN =
  /^(?<user>[^:@/]+)(?::(?<password>.*))?@tcp\((?<host>\[[^\](]+\]|[^):(]+)(?::(?<port>\d{1,5}))?\)\/(?<database>[^/?]+)(?:\?(?<query>[^]*))?$/
const URL_EXPECTED = 'expected an address such as mysql://user@host/database'

/**
 * Parses `mysql://user@host/database`, the same with `mariadb:`, or the format of `SQL_DSN`; undefined for
 * any other text. The query parameters `tls=true` and `tls=skip-verify` require TLS. Throws a sentence for
 * the operator that does not contain the password.
 */
export function mysqlAddress(place: string): MysqlAddress | undefined {
  const dsn = DSN.exec(place)?.groups
  if (dsn) {
    const { user = '', password = '', host = '', port, database = '', query } = dsn
    return address(host, port, user, password, database, new URLSearchParams(query))
  }
  if (!/^(?:mysql|mariadb):/i.test(place)) return undefined
  const url = URL.canParse(place) ? new URL(place) : undefined
  const [, database = ''] = url?.pathname.split('/') ?? []
  if (!url || url.hostname === '' || database === '' || url.username === '') throw new Error(URL_EXPECTED)
  const { hostname, port, username, password, searchParams } = url
  try {
    const [user, secret, name] = [username, password, database].map(decodeURIComponent)
    return address(hostname, port, user ?? '', secret ?? '', name ?? '', searchParams)
  } catch (error) {
    if (error instanceof URIError) throw new Error(URL_EXPECTED, { cause: error })
    throw error
  }
}

function address(
  host: string,
  port: string | undefined,
  user: string,
  password: string,
  database: string,
  query: URLSearchParams,
): MysqlAddress {
  return {
    host: host.replace(/^\[|\]$/g, ''),
    port: port ? Number(port) : DEFAULT_PORT,
    user,
    password,
    database,
    tls: tlsOf(query.get('tls')),
  }
}

function tlsOf(given: string | null): MysqlAddress['tls'] {
  switch (given) {
    case null:
    case 'false':
      return 'none'
    case 'true':
      return 'verified'
    case 'skip-verify':
      return 'unverified'
    default:
      throw new Error(`tls: expected true, false or skip-verify, not "${given}"`)
  }
}
