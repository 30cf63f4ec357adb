import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { ConfigError, type Diagnostic } from './diagnostics.ts'
import type { BucketCredentials } from '../domain/bucket.ts'
import { isSameListenAddress, parseListenAddress } from '../domain/listen-address.ts'
import { findNearest } from '../domain/nearest.ts'
import { KEY_VARIABLES } from './vendors.ts'
import { expectedOfTls, parseDatabaseUrl, sqlitePath, sqliteUrl } from '../domain/database-url.ts'
import type { ProxyVariables } from '../upstreams/environment-proxies.ts'
import { parseProxy } from '../upstreams/parse-proxy.ts'

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/** The lowest level that is logged; `silent` logs nothing. */
type LogLevel = (typeof LOG_LEVELS)[number]

/**
 * The settings of the environment and the command line. Paths are absolute. `docs/configuration.md:
 * Environment`.
 */
export interface Environment {
  /** The port to listen on; 0 for any free port. */
  readonly port: number
  readonly host: string
  /** Address (`HOST:PORT`) for health checks and metrics, unless `options.admin_listen` states one; empty for none. */
  readonly adminListen: string
  readonly dataDir: string
  /** URL of the database: `sqlite:PATH`, or `postgres://…`. */
  readonly databaseUrl: string
  /**
   * URL of the Redis server, `redis://…` or `rediss://…`; undefined if each node counts rate limits for
   * itself.
   */
  readonly redisUrl: string | undefined
  readonly configFile: string | undefined
  /**
   * The secret from which keys for encryption at rest are derived; undefined if the one stored in `dataDir`
   * is used.
   */
  readonly secret: string | undefined
  /** The secret that replaces `secret`: `docs/security.md: Change the secret`. */
  readonly newSecret: string | undefined
  readonly logLevel: LogLevel
  /** Credentials for the bucket in which the content log may store content; undefined if they are not set. */
  readonly bucketKey: BucketCredentials | undefined
  /** The API keys of known vendors, by the name of their environment variable. */
  readonly vendorKeys: ReadonlyMap<string, string>
  /** Proxies for requests of channels that have none. */
  readonly proxies: ProxyVariables
  /** The values that replace `${NAME}` in the configuration file. */
  readonly variables: ReadonlyMap<string, string>
}

/**
 * Reads the environment; an empty variable counts as unset. Throws a ConfigError that names every variable
 * with an unexpected value.
 */
export function readEnvironment(
  env: NodeJS.ProcessEnv,
  flags: { config?: string | undefined } = {},
  folder = process.cwd(),
): Environment {
  const diagnostics: Diagnostic[] = []
  const expect = (name: string, expected: string): undefined => {
    diagnostics.push({ file: 'environment', path: name, message: `expected ${expected}` })
  }
  const given = (name: string): string | undefined => env[name]?.trim() || undefined
  const dataDir = resolve(folder, given('DATA_DIR') ?? 'data')
  const environment: Environment = {
    port: readPort(given('PORT') ?? '3000') ?? expect('PORT', 'a port from 0 to 65535') ?? 0,
    host: readHost(given('HOST') ?? '127.0.0.1') ?? expect('HOST', 'an address or host name') ?? '',
    adminListen: readAdminListen(given('ADMIN_LISTEN') ?? '', expect) ?? '',
    dataDir,
    databaseUrl: readDatabaseUrl(given('DATABASE_URL'), dataDir, folder, expect) ?? '',
    redisUrl: readRedisUrl(given('REDIS_URL'), expect),
    configFile: readConfigFile(flags.config, given('GATEWAY_CONFIG'), folder, expect),
    secret: readSecret('GATEWAY_SECRET', env['GATEWAY_SECRET'] || undefined, expect),
    newSecret: readSecret('GATEWAY_SECRET_NEW', env['GATEWAY_SECRET_NEW'] || undefined, expect),
    logLevel: readLogLevel(given('LOG_LEVEL') ?? 'info', expect) ?? 'info',
    bucketKey: readBucketKey(
      given('AWS_ACCESS_KEY_ID'),
      given('AWS_SECRET_ACCESS_KEY'),
      given('AWS_SESSION_TOKEN'),
    ),
    vendorKeys: new Map(
      [...KEY_VARIABLES].flatMap((name): [string, string][] => {
        const key = given(name)
        if (key === undefined) return []
        if (/^[!-~]+$/.test(key)) return [[name, key]]
        expect(name, 'a key: printable characters without spaces')
        return []
      }),
    ),
    proxies: {
      http: readProxy(['http_proxy', 'HTTP_PROXY'], given, expect),
      https: readProxy(['https_proxy', 'HTTPS_PROXY'], given, expect),
      except: given('no_proxy') ?? given('NO_PROXY') ?? '',
    },
    variables: new Map(
      Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
    ),
  }
  const admin = parseListenAddress(environment.adminListen)
  if (admin && isSameListenAddress(admin, environment))
    expect('ADMIN_LISTEN', 'another address than that of HOST and PORT')
  if (diagnostics.length > 0) throw new ConfigError(diagnostics)
  return environment
}

type Expect = (name: string, expected: string) => undefined

function readPort(text: string): number | undefined {
  return /^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined
}

function readHost(text: string): string | undefined {
  return /^[\w.:-]+$/.test(text) ? text : undefined
}

function readAdminListen(text: string, expect: Expect): string | undefined {
  return text === '' || parseListenAddress(text) ? text : expect('ADMIN_LISTEN', 'HOST:PORT')
}

/** The first of these variables that is set. As in curl, a proxy without a scheme is an HTTP proxy. */
function readProxy(
  names: readonly string[],
  given: (name: string) => string | undefined,
  expect: Expect,
): string | undefined {
  const name = names.find((one) => given(one) !== undefined)
  const text = name && given(name)
  if (name === undefined || text === undefined) return undefined
  const url = text.includes('://') ? text : `http://${text}`
  // The URL may contain a password, so the message does not repeat it.
  return parseProxy(url)
    ? url
    : expect(name, 'http://HOST:PORT or socks5://HOST:PORT, with USER:PASSWORD@ if need be')
}

function readDatabaseUrl(
  text: string | undefined,
  dataDir: string,
  folder: string,
  expect: Expect,
): string | undefined {
  if (text === undefined) return sqliteUrl(resolve(dataDir, 'sluice.db'))
  // The URL may contain a password, so messages do not repeat it.
  if (/^postgres(?:ql)?:\/\/\S+$/i.test(text)) {
    const expected = isParsable(text) ? expectedOfTls(text) : 'a URL'
    return expected === undefined ? text : expect('DATABASE_URL', expected)
  }
  const path = sqlitePath(text)
  return path !== undefined && /^.+$/.test(path)
    ? sqliteUrl(resolve(folder, path))
    : expect('DATABASE_URL', 'sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE')
}

function isParsable(databaseUrl: string): boolean {
  try {
    return parseDatabaseUrl(databaseUrl).protocol !== ''
  } catch {
    return false
  }
}

// The URL may contain a password, so messages do not repeat it.
function readRedisUrl(text: string | undefined, expect: Expect): string | undefined {
  if (text === undefined) return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isRedis = url && /^rediss?:$/.test(url.protocol) && url.hostname !== ''
  if (isRedis && /^\/?\d{0,3}$/.test(url.pathname) && url.search + url.hash === '') return text
  return expect(
    'REDIS_URL',
    'redis://HOST:PORT, or rediss:// for TLS, with USER:PASSWORD@ before the host and /NUMBER of a database behind it if need be',
  )
}

function readConfigFile(
  flag: string | undefined,
  variable: string | undefined,
  folder: string,
  expect: Expect,
): string | undefined {
  const named = flag ?? variable
  const file = resolve(folder, named ?? 'gateway.yaml')
  if (existsSync(file)) return file
  return (
    named &&
    expect(flag === undefined ? 'GATEWAY_CONFIG' : '--config', `a file, but there is none at ${file}`)
  )
}

function readBucketKey(
  accessKeyId: string | undefined,
  secretAccessKey: string | undefined,
  sessionToken: string | undefined,
): BucketCredentials | undefined {
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined
  return { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) }
}

function readSecret(name: string, text: string | undefined, expect: Expect): string | undefined {
  return text !== undefined && text.length < 16 ? expect(name, 'at least 16 characters') : text
}

function readLogLevel(text: string, expect: Expect): LogLevel | undefined {
  const level = LOG_LEVELS.find((candidate) => candidate === text.toLowerCase())
  const suggestion = findNearest(text, LOG_LEVELS)
  return (
    level ?? expect('LOG_LEVEL', `one of ${LOG_LEVELS.join(', ')}${suggestion ? ` (${suggestion}?)` : ''}`)
  )
}
