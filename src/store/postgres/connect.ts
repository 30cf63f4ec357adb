import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import { Client, type ClientConfig } from 'pg'
import { databaseTls, parseDatabaseUrl } from '../../domain/database-url.ts'
import { DatabaseAddressError } from '../store-unavailable.ts'

/** Parameters that are not sent to the server as they stand in the URL. */
const TLS_PARAMETERS = ['ssl', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey'] as const

/** Settings of a database session, in milliseconds. */
export interface SessionTimeouts {
  readonly statement_timeout?: number
  readonly lock_timeout?: number
  readonly idle_in_transaction_session_timeout?: number
}
const TIMEOUTS = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'] as const

/**
 * Statements after which the server ends a session within six seconds if the machine of the gateway becomes unreachable.
 * Advisory locks of the session end with it.
 */
export const END_IF_UNREACHABLE =
  'set tcp_keepalives_idle = 3; set tcp_keepalives_interval = 1; set tcp_keepalives_count = 3; set tcp_user_timeout = 6000'

/** What a connection needs: how to open it, and the statement that sets its timeouts. */
export interface ConnectionPlan {
  readonly connectionString: string
  /** Kinds of TLS in the order in which they are tried; `false` is a connection without it. */
  readonly tls: readonly (ConnectionOptions | false)[]
  /** Run first on each new connection; undefined if there is nothing to set. */
  readonly start: string | undefined
  /** What errors call the URL. */
  readonly name: string
}

/**
 * Plans connections to the database at a URL. Timeouts are set after connecting and not when the connection
 * is opened, because poolers refuse that; those that the URL states have priority. `name`: what errors call the
 * URL. Throws an Error that names a file which cannot be read.
 */
export function connectionPlan(
  url: string,
  timeouts: SessionTimeouts = {},
  name = 'DATABASE_URL',
): ConnectionPlan {
  const address = parseDatabaseUrl(url)
  const { searchParams } = address
  const stated = TIMEOUTS.map((name) => [name, searchParams.get(name) ?? timeouts[name]] as const)
  const settings = stated.filter(([, value]) => value !== undefined && /^\d+$/.test(String(value)))
  const tls = tlsInOrder(url, name)
  for (const parameter of [...TLS_PARAMETERS, ...TIMEOUTS]) searchParams.delete(parameter)
  return {
    name,
    connectionString: address.href,
    tls,
    start:
      settings.length === 0
        ? undefined
        : settings.map(([timeout, value]) => `set ${timeout} = ${value}`).join('; '),
  }
}

function tlsInOrder(url: string, urlName: string): readonly (ConnectionOptions | false)[] {
  const { searchParams } = parseDatabaseUrl(url)
  const { mode, isLocal, isChecked } = databaseTls(url)
  const root = searchParams.get('sslrootcert')
  const encrypted: ConnectionOptions = {
    rejectUnauthorized: isChecked,
    // As with libpq, `system` stands for the authorities that this machine trusts.
    ...(root !== null && root !== 'system' && { ca: contentOf('sslrootcert', root, urlName) }),
    ...fileOption('cert', 'sslcert', searchParams, urlName),
    ...fileOption('key', 'sslkey', searchParams, urlName),
    ...(isChecked && mode !== 'verify-full' && { checkServerIdentity: () => undefined }),
  }
  if (mode === 'disable') return [false]
  if (mode !== 'prefer') return [encrypted]
  return isLocal ? [false, encrypted] : [encrypted, false]
}

function fileOption(
  option: 'cert' | 'key',
  name: 'sslcert' | 'sslkey',
  parameters: URLSearchParams,
  urlName: string,
): ConnectionOptions {
  const path = parameters.get(name)
  return path === null ? {} : { [option]: contentOf(name, path, urlName) }
}

function contentOf(name: string, path: string, urlName: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`${name} of ${urlName}: expected a file that can be read: ${reason}`, { cause: error })
  }
}

/** Options of one connection, beside its URL. */
type OpenOptions = Omit<ClientConfig, 'connectionString' | 'ssl' | keyof SessionTimeouts> & {
  readonly timeouts?: SessionTimeouts
}

/**
 * Opens a connection, and sets its timeouts. Tries without TLS, or with it, as the URL allows. Rejects with
 * the error of the last attempt. Later errors of the connection are ignored unless the caller listens.
 */
export async function openClient(url: string, { timeouts, ...options }: OpenOptions): Promise<Client> {
  const plan = connectionPlan(url, timeouts)
  return connectInOrder(plan, async (ssl) => {
    const client = new Client({ ...options, connectionString: plan.connectionString, ssl })
    client.on('error', () => {})
    try {
      await client.connect()
      if (plan.start !== undefined) await client.query(plan.start)
      return client
    } catch (error) {
      client.end().catch(() => {})
      throw error
    }
  })
}

/**
 * Connects without TLS, or with it, as the plan allows, until one attempt succeeds. `connect` must reject with
 * the error of the driver. Rejects with the error of the last attempt, and its remedy if it is about TLS.
 */
export async function connectInOrder<Connected>(
  { tls, name }: ConnectionPlan,
  connect: (ssl: ConnectionOptions | false) => Promise<Connected>,
): Promise<Connected> {
  for (const [index, ssl] of tls.entries()) {
    try {
      return await connect(ssl)
    } catch (error) {
      if (index === tls.length - 1 || !isAboutTls(error)) throw explained(error, name)
    }
  }
  throw new Error('there is no way to connect')
}

const NO_TLS = 'The server does not support SSL connections'
/** A server that accepts this user and database only with TLS, or only without it. */
const NO_ENTRY = /^no pg_hba\.conf entry .*(?:no encryption|SSL off|SSL encryption|SSL on)/

function isAboutTls(error: unknown): boolean {
  return (
    error instanceof Error && (error.message === NO_TLS || NO_ENTRY.test(error.message) || isTlsError(error))
  )
}

function isTlsError(error: Error): boolean {
  const { code } = error as NodeJS.ErrnoException
  return typeof code === 'string' && /CERT|^ERR_(?:TLS|SSL)|^UNABLE_TO_/.test(code)
}

/**
 * An error that says what is wrong with the encryption of a connection, and what to do; it will not pass by
 * itself. Other errors are returned unchanged.
 */
function explained(error: unknown, name: string): unknown {
  if (!(error instanceof Error)) return error
  const remedy = remedyOf(error, name)
  return remedy === undefined ? error : new DatabaseAddressError(`the database ${remedy}`, { cause: error })
}

function remedyOf(error: Error, name: string): string | undefined {
  if (error.message === NO_TLS)
    return `does not encrypt connections: set its option ssl, or add sslmode=disable to ${name}`
  if (/(?:no encryption|SSL off)/.test(error.message) && NO_ENTRY.test(error.message))
    return `accepts encrypted connections only: add sslmode=verify-full to ${name}, or sslmode=require if its certificate cannot be checked`
  if (!isTlsError(error)) return undefined
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `has a certificate for another name (${error.message}): call it by that name, or set sslmode=verify-ca in ${name}`
  if (code === 'CERT_HAS_EXPIRED') return 'has a certificate that has expired'
  if (/SELF_SIGNED|UNABLE_TO_|ISSUER/.test(code ?? ''))
    return `has a certificate of an authority that is not known here (${error.message}): add sslrootcert=FILE with the certificate of that authority to ${name}`
  return `cannot be reached over TLS: ${error.message}`
}
