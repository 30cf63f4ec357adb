import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readEnvironment } from './environment.ts'
import { ConfigError } from './diagnostics.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'environment-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function said(env: NodeJS.ProcessEnv, flags: { config?: string } = {}): string[] {
  try {
    readEnvironment(env, flags, folder)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.message.split('\n')
  }
}

describe('the environment', () => {
  test('every environment variable that is not set has its default, e.g. port 3000', () => {
    expect(readEnvironment({}, {}, folder)).toEqual({
      port: 3000,
      host: '127.0.0.1',
      dataDir: join(folder, 'data'),
      databaseUrl: `sqlite:${join(folder, 'data', 'sluice.db')}`,
      adminListen: '',
      redisUrl: undefined,
      configFile: undefined,
      secret: undefined,
      logLevel: 'info',
      vendorKeys: new Map(),
      proxies: { http: undefined, https: undefined, except: '' },
      variables: new Map(),
    })
  })

  test('an unknown sslmode of DATABASE_URL is a mistake, which does not repeat the password', () => {
    expect(said({ DATABASE_URL: 'postgres://a:secret@db/x?sslmode=no-verify' })).toEqual([
      'environment: DATABASE_URL: expected one of disable, prefer, require, verify-ca, verify-full as sslmode, found "no-verify"',
    ])
  })

  test('proxies are read as curl reads them: in lower case first, and without a scheme as HTTP', () => {
    const env = {
      http_proxy: 'one:3128',
      HTTP_PROXY: 'http://two:1',
      HTTPS_PROXY: 'socks5://a:b@three',
      NO_PROXY: 'x',
    }
    expect(readEnvironment(env, {}, folder).proxies).toEqual({
      http: 'http://one:3128',
      https: 'socks5://a:b@three',
      except: 'x',
    })
    expect(said({ HTTPS_PROXY: 'https://a:secret@proxy' })).toEqual([
      'environment: HTTPS_PROXY: expected http://HOST:PORT or socks5://HOST:PORT, with USER:PASSWORD@ if need be',
    ])
  })

  test('ADMIN_LISTEN is HOST:PORT, and another address than that of HOST and PORT', () => {
    expect(readEnvironment({ ADMIN_LISTEN: '[::1]:9100' }, {}, folder).adminListen).toBe('[::1]:9100')
    for (const text of ['9100', 'localhost', ':9100', '127.0.0.1:0', '127.0.0.1:65536', '::1:9100'])
      expect(said({ ADMIN_LISTEN: text })).toEqual(['environment: ADMIN_LISTEN: expected HOST:PORT'])
    for (const [host, admin] of [
      ['127.0.0.1', '127.0.0.1:3000'],
      ['0.0.0.0', '127.0.0.1:3000'],
      ['::1', '0.0.0.0:3000'],
    ])
      expect(said({ HOST: host, ADMIN_LISTEN: admin })).toEqual([
        'environment: ADMIN_LISTEN: expected another address than that of HOST and PORT',
      ])
    expect(said({ HOST: '127.0.0.1', ADMIN_LISTEN: '127.0.0.2:3000' })).toEqual([])
  })

  test('environment variables that are set override the defaults', () => {
    const env = {
      PORT: '0',
      HOST: '::1',
      DATA_DIR: 'here',
      DATABASE_URL: 'sqlite:other/ledger.db',
      GATEWAY_SECRET: '0123456789abcdef',
      LOG_LEVEL: 'WARN',
      OPENAI_API_KEY: 'sk-1',
      SOMEBODY_API_KEY: 'x',
    }
    expect(readEnvironment(env, {}, folder)).toMatchObject({
      port: 0,
      host: '::1',
      dataDir: join(folder, 'here'),
      databaseUrl: `sqlite:${join(folder, 'other/ledger.db')}`,
      secret: '0123456789abcdef',
      logLevel: 'warn',
      vendorKeys: new Map([['OPENAI_API_KEY', 'sk-1']]),
      variables: new Map(Object.entries(env)),
    })
  })

  test('an empty environment variable counts as unset', () => {
    expect(
      said({ PORT: '', REDIS_URL: '', OPENAI_API_KEY: '', GATEWAY_CONFIG: '', GATEWAY_SECRET: '' }),
    ).toEqual([])
  })

  test('without DATABASE_URL the database is a SQLite file in DATA_DIR', () => {
    expect(readEnvironment({ DATA_DIR: '/var/lib/sluice' }, {}, folder).databaseUrl).toBe(
      'sqlite:/var/lib/sluice/sluice.db',
    )
  })

  test.each([
    [{ PORT: '70000' }, 'environment: PORT: expected a port from 0 to 65535'],
    [{ PORT: 'http' }, 'environment: PORT: expected a port from 0 to 65535'],
    [{ HOST: 'a b' }, 'environment: HOST: expected an address or host name'],
    [
      { DATABASE_URL: 'mysql://x' },
      'environment: DATABASE_URL: expected sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE',
    ],
    [
      { DATABASE_URL: 'postgres:' },
      'environment: DATABASE_URL: expected sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE',
    ],
    [
      { REDIS_URL: 'http://h' },
      'environment: REDIS_URL: expected redis://HOST:PORT, or rediss:// for TLS, with USER:PASSWORD@ before the host and /NUMBER of a database behind it if need be',
    ],
    [{ GATEWAY_SECRET: 'short' }, 'environment: GATEWAY_SECRET: expected at least 16 characters'],
    [
      { LOG_LEVEL: 'warning' },
      'environment: LOG_LEVEL: expected one of fatal, error, warn, info, debug, trace, silent',
    ],
    [
      { LOG_LEVEL: 'inf' },
      'environment: LOG_LEVEL: expected one of fatal, error, warn, info, debug, trace, silent (info?)',
    ],
    [
      { OPENAI_API_KEY: 'two words' },
      'environment: OPENAI_API_KEY: expected a key: printable characters without spaces',
    ],
  ])(
    'the environment variables %o are refused with an error that names the variable and what is expected',
    (env, expected) => {
      expect(said(env)).toEqual([expected])
    },
  )

  test('all invalid environment variables are reported at once', () => {
    expect(said({ PORT: '-1', LOG_LEVEL: 'loud', REDIS_URL: 'redis:' })).toHaveLength(3)
  })

  test('GATEWAY_CONFIG or --config naming a missing file is an error', () => {
    expect(said({ GATEWAY_CONFIG: 'none.yaml' })).toEqual([
      `environment: GATEWAY_CONFIG: expected a file, but there is none at ${join(folder, 'none.yaml')}`,
    ])
    expect(said({}, { config: 'none.yaml' })).toEqual([
      `environment: --config: expected a file, but there is none at ${join(folder, 'none.yaml')}`,
    ])
  })

  test('the configuration file is that of --config, else that of GATEWAY_CONFIG, else gateway.yaml', () => {
    for (const name of ['gateway.yaml', 'variable.yaml', 'flag.yaml']) writeFileSync(join(folder, name), '')
    const fileOf = (env: NodeJS.ProcessEnv, config?: string): string | undefined =>
      readEnvironment(env, { config }, folder).configFile
    expect(fileOf({})).toBe(join(folder, 'gateway.yaml'))
    expect(fileOf({ GATEWAY_CONFIG: 'variable.yaml' })).toBe(join(folder, 'variable.yaml'))
    expect(fileOf({ GATEWAY_CONFIG: 'variable.yaml' }, 'flag.yaml')).toBe(join(folder, 'flag.yaml'))
  })
})
