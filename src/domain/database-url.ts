import { isLoopback } from './ip-allow-list.ts'

/** The path in a URL `sqlite:PATH` of an embedded database; undefined for any other URL. */
export function sqlitePath(databaseUrl: string): string | undefined {
  return /^sqlite:/i.test(databaseUrl) ? databaseUrl.slice('sqlite:'.length) : undefined
}

/** The URL of the embedded database in a file. */
export function sqliteUrl(path: string): string {
  return `sqlite:${path}`
}

/** Returns the text if it is a `postgres:` URL that names a database; undefined for any other text. */
export function postgresUrl(text: string): string | undefined {
  if (!/^postgres(?:ql)?:\/\//i.test(text) || !URL.canParse(text)) return undefined
  return new URL(text).pathname.length > 1 ? text : undefined
}

/** Ways in which connections to PostgreSQL are encrypted, as libpq reads them. */
export const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const
type SslMode = (typeof SSL_MODES)[number]

/** How connections to a PostgreSQL database are encrypted. `docs/databases.md: TLS`. */
export interface DatabaseTls {
  readonly mode: SslMode
  /** Whether the server is on this machine, so that no network lies between. */
  readonly isLocal: boolean
  /** Whether every connection is encrypted, and whether the server must prove who it is. */
  readonly isEncrypted: boolean
  readonly isChecked: boolean
}

/**
 * Parses the URL of a PostgreSQL database. A URL without a host, which names a folder of sockets as `host=`
 * in its query, has the host `localhost`.
 */
export function parseDatabaseUrl(url: string): URL {
  return URL.parse(url) ?? new URL(url.replace('@/', '@localhost/'))
}

/** How connections to the PostgreSQL database of a URL are encrypted; an unknown mode counts as the strictest. */
export function databaseTls(url: string): DatabaseTls {
  const { hostname, searchParams } = parseDatabaseUrl(url)
  const isOn = ['true', '1'].includes(searchParams.get('ssl') ?? '')
  const stated = searchParams.get('sslmode') ?? (isOn ? 'verify-full' : 'prefer')
  const mode = SSL_MODES.find((one) => one === stated) ?? 'verify-full'
  const host = (searchParams.get('host') ?? decodeURIComponent(hostname)).replace(/^\[|\]$/g, '')
  const isLocal = host === '' || host.startsWith('/') || host === 'localhost' || isLoopback(host)
  const isChecked = mode.startsWith('verify') || (mode === 'require' && searchParams.has('sslrootcert'))
  return { mode, isLocal, isEncrypted: mode === 'require' || isChecked, isChecked }
}

/**
 * What is wrong with the parameters for encryption in the URL of a PostgreSQL database, as the end of a
 * sentence that begins with "expected"; undefined if nothing is.
 */
export function expectedOfTls(url: string): string | undefined {
  const { searchParams } = parseDatabaseUrl(url)
  const mode = searchParams.get('sslmode')
  if (mode !== null && !SSL_MODES.some((one) => one === mode))
    return `one of ${SSL_MODES.join(', ')} as sslmode, found ${JSON.stringify(mode)}`
  if (mode === 'verify-ca' && !searchParams.has('sslrootcert'))
    return 'sslrootcert=FILE beside sslmode=verify-ca, with the certificate of the authority'
  return undefined
}

/** A warning about the encryption of connections to a PostgreSQL database; undefined if there is none. */
export function databaseWarning(url: string): string | undefined {
  const { isLocal, mode, isEncrypted, isChecked } = databaseTls(url)
  if (isLocal || isChecked) return undefined
  const remedy = 'add sslmode=verify-full, and sslrootcert=FILE if its authority is a private one'
  if (isEncrypted) return `the certificate of the database is not checked: ${remedy}`
  return `connections to the database ${mode === 'disable' ? 'are' : 'may be'} unencrypted: ${remedy}`
}
