import { chmodSync, chownSync, copyFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { openPostgresSource } from '@sluice/import/postgres-source'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SOURCE_READERS } from '../../src/transfer/source-readers.ts'
import { openClient } from '../../src/store/postgres/connect.ts'
import { connectionPool } from '../../src/store/postgres/pool.ts'
import { SECRET, sluiceProcess } from '../fixtures/command.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { type OwnPostgres, startOwnPostgres, withoutCrashes } from '../fixtures/own-postgres.ts'
import { patientWithPostgres } from '../fixtures/patient-program.ts'
import { type PoolMode, startPgBouncer, withoutPgBouncer } from '../fixtures/pgbouncer.ts'
import { newFolder, readyProgram, runProgram } from './program.ts'

const OPTIONS = { connectionTimeoutMillis: 60_000 }
const config = plainConfiguration('http://127.0.0.1:9/v1')

const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url))

/** The URL with another host or other parameters. */
function changed(url: string, host: string, parameters: Record<string, string> = {}): string {
  const result = new URL(url)
  result.hostname = host
  for (const [name, value] of Object.entries(parameters)) result.searchParams.set(name, value)
  return result.href
}

/** The sentence with which a start ends. */
async function refusalOf(url: string): Promise<string> {
  // On a busy machine the start could end with a connection timeout instead.
  const program = await runProgram({ config, env: { DATABASE_URL: url }, cwd: await patientWithPostgres() })
  const { code } = await program.exit
  expect(code, program.err()).toBe(1)
  // Waiting would not help.
  expect(program.out()).not.toContain('tried again')
  program.folder.discard()
  return program.err()
}

describe.skipIf(withoutCrashes('databases with TLS'))('a database with TLS and a private authority', () => {
  let server: OwnPostgres
  let folder: string

  const run = async <Row>(statement: string): Promise<Row[]> => {
    const client = await openClient(server.url, OPTIONS)
    const { rows } = await client.query(statement)
    await client.end()
    return rows as Row[]
  }

  /** Lets the server accept these kinds of connection. */
  const allow = async (access: string): Promise<void> => {
    const [hba] = await run<{ hba_file: string }>('show hba_file')
    writeFileSync(hba?.hba_file ?? '', `${access} all all 127.0.0.1/32 scram-sha-256\n`)
    await run('select pg_reload_conf()')
  }
  /** Lets the server encrypt with this certificate, and accept these kinds of connection. */
  const configure = async (certificate: string, access: string): Promise<void> => {
    const [row] = await run<{ data_directory: string }>('show data_directory')
    const { uid, gid } = statSync(row?.data_directory ?? '')
    for (const part of ['cert', 'key'] as const) {
      const file = join(folder, `${certificate}.${part}.pem`)
      copyFileSync(fixture(`${certificate}.${part}.pem`), file)
      chmodSync(file, 0o600)
      if (process.getuid?.() === 0) chownSync(file, uid, gid)
      await run(`alter system set ssl_${part}_file = '${file}'`)
    }
    await run('alter system set ssl = on')
    await allow(access)
    await expect.poll(() => kindOf(changed(server.url, '127.0.0.1', { sslmode: 'require' }))).toBe(true)
  }
  /** Whether a connection is encrypted; the message of the error if it fails. */
  const kindOf = async (url: string): Promise<unknown> => {
    try {
      const client = await openClient(url, OPTIONS)
      const { rows } = await client.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()')
      await client.end()
      return (rows[0] as { ssl: boolean }).ssl
    } catch (error) {
      return error instanceof Error ? error.message : error
    }
  }

  beforeAll(async () => {
    server = await startOwnPostgres()
    folder = mkdtempSync(join(tmpdir(), 'sluice-tls-'))
    chmodSync(folder, 0o755)
  })
  afterAll(async () => {
    await server?.stop()
    if (folder) rmSync(folder, { recursive: true })
  })

  test('a server without TLS is used as sslmode says: not if encryption is required', async () => {
    for (const sslmode of ['disable', 'prefer'])
      expect(await kindOf(changed(server.url, '127.0.0.1', { sslmode }))).toBe(false)
    expect(await kindOf(server.url)).toBe(false)
    expect(await refusalOf(changed(server.url, '127.0.0.1', { sslmode: 'require' }))).toBe(
      'sluice cannot start: the database does not encrypt connections: set its option ssl, or add sslmode=disable to DATABASE_URL\n',
    )
  })

  test('sslmode is read as by libpq: what is encrypted, and what is checked', async () => {
    await configure('localhost', 'hostssl')
    const root = fixture('localhost.cert.pem')
    const at = (host: string, parameters: Record<string, string>) =>
      kindOf(changed(server.url, host, parameters))
    expect(await kindOf(server.url)).toBe(true)
    expect(await at('localhost', { sslmode: 'prefer' })).toBe(true)
    expect(await at('localhost', { sslmode: 'require' })).toBe(true)
    const isUnknown = expect.stringMatching(
      /^the database has a certificate of an authority that is not known here .*: add sslrootcert=FILE/,
    )
    expect(await at('localhost', { sslmode: 'verify-full' })).toEqual(isUnknown)
    for (const sslmode of ['require', 'verify-ca', 'verify-full'])
      expect(await at('localhost', { sslmode, sslrootcert: root }), sslmode).toBe(true)
    // With an authority, `require` checks it.
    const other = fixture('vertex.cert.pem')
    for (const sslmode of ['require', 'verify-ca'])
      expect(await at('localhost', { sslmode, sslrootcert: other }), sslmode).toEqual(isUnknown)
    expect(await at('localhost', { sslmode: 'verify-full', sslrootcert: '/no/such/file' })).toMatch(
      /^sslrootcert of DATABASE_URL: expected a file that can be read: .*\/no\/such\/file/,
    )
    expect(await refusalOf(changed(server.url, '127.0.0.1', { sslmode: 'disable' }))).toBe(
      'sluice cannot start: the database accepts encrypted connections only: add sslmode=verify-full to DATABASE_URL, or sslmode=require if its certificate cannot be checked\n',
    )
    const program = await readyProgram({
      config,
      env: { DATABASE_URL: changed(server.url, 'localhost', { sslmode: 'verify-full', sslrootcert: root }) },
    })
    expect(program.out()).not.toContain('DATABASE_URL')
  })

  test('a gateway without sslmode goes on when the server asks for encryption, and when it no more allows it', async () => {
    await configure('localhost', 'host')
    const pool = connectionPool(changed(server.url, 'localhost'), {
      connectMs: OPTIONS.connectionTimeoutMillis,
    })
    const isEncrypted = async (): Promise<unknown> => {
      const connection = await pool.connect()
      const { rows } = await connection.query<{ ssl: boolean }>(
        'select ssl from pg_stat_ssl where pid = pg_backend_pid()',
        [],
      )
      // As after a restart of the server, the next query needs a new connection.
      connection.release(true)
      return rows[0]?.ssl
    }
    expect(await isEncrypted()).toBe(false)
    for (const access of ['hostssl', 'hostnossl', 'hostssl']) {
      await allow(access)
      await expect.poll(isEncrypted).toBe(access === 'hostssl')
    }
    await pool.end()
  })

  test('the database of an import is reached with TLS by the same parameters', async () => {
    await configure('localhost', 'hostssl')
    const sslrootcert = fixture('localhost.cert.pem')
    const tablesAt = async (parameters: Record<string, string>): Promise<unknown> => {
      try {
        const source = await openPostgresSource(
          changed(server.url, 'localhost', parameters),
          SOURCE_READERS.postgres,
        )
        const tables = await source.tables()
        await source.close()
        return tables
      } catch (error) {
        return error instanceof Error ? error.message : error
      }
    }
    const accepted = [
      {},
      { sslmode: 'prefer' },
      { sslmode: 'require' },
      { sslmode: 'verify-full', sslrootcert },
    ]
    for (const parameters of accepted)
      expect(await tablesAt(parameters), JSON.stringify(parameters)).toBeInstanceOf(Array)
    expect(await tablesAt({ sslmode: 'verify-full' })).toMatch(
      /^the database has a certificate of an authority that is not known here .*: add sslrootcert=FILE .* to the address$/,
    )
    expect(await tablesAt({ sslmode: 'require', sslrootcert: fixture('vertex.cert.pem') })).toMatch(
      /not known here/,
    )
    expect(await tablesAt({ sslmode: 'verify-full', sslrootcert: '/no/such/file' })).toMatch(
      /^sslrootcert of the address: expected a file that can be read/,
    )
    expect(await tablesAt({ sslmode: 'disable' })).toMatch(/^the database accepts encrypted connections only/)
    expect(await tablesAt({ sslmode: 'no-verify' })).toMatch(/^expected one of disable, prefer, require/)
  })

  test('verify-full checks the name of the server, and verify-ca does not', async () => {
    await configure('vertex', 'hostssl')
    const sslrootcert = fixture('vertex.cert.pem')
    expect(await kindOf(changed(server.url, 'localhost', { sslmode: 'verify-ca', sslrootcert }))).toBe(true)
    expect(await kindOf(changed(server.url, 'localhost', { sslmode: 'verify-full', sslrootcert }))).toMatch(
      /^the database has a certificate for another name .*: call it by that name, or set sslmode=verify-ca in DATABASE_URL$/,
    )
  })
})

describe.skipIf(
  withoutPgBouncer('databases behind PgBouncer') || withoutCrashes('databases behind PgBouncer'),
)('a database behind PgBouncer with its default settings', () => {
  let server: OwnPostgres
  beforeAll(async () => {
    server = await startOwnPostgres()
  })
  afterAll(() => server?.stop())

  test('a pooler in session mode needs no exceptions, and keeps the timeouts of a statement', async () => {
    const pooler = await startPgBouncer(server, 'session')
    try {
      await readyProgram({ config, env: { DATABASE_URL: pooler.url } })
      const client = await openClient(pooler.url, { ...OPTIONS, timeouts: { statement_timeout: 1234 } })
      expect((await client.query('show statement_timeout')).rows).toEqual([{ statement_timeout: '1234ms' }])
      await client.end()
    } finally {
      await pooler.stop()
    }
  })

  test.each<[PoolMode]>([['transaction'], ['statement']])(
    'a pooler in %s mode is refused at the start, in words that name the way out',
    async (mode) => {
      const pooler = await startPgBouncer(server, mode)
      try {
        expect(await refusalOf(pooler.url)).toMatch(
          /^sluice cannot start: DATABASE_URL names a connection pooler in transaction mode, .*: name its port of session mode, or the server itself\n$/,
        )
      } finally {
        await pooler.stop()
      }
    },
  )

  test('a command refuses a pooler in transaction mode before it sets anything on a connection that others get', async () => {
    const pooler = await startPgBouncer(server, 'transaction')
    const folder = newFolder()
    try {
      const env = { DATABASE_URL: pooler.url, GATEWAY_SECRET: SECRET, DATA_DIR: folder.path }
      const { code, err } = await sluiceProcess(['logs'], env, '', await patientWithPostgres())
      const client = await openClient(pooler.url, OPTIONS)
      expect((await client.query('show statement_timeout')).rows).toEqual([{ statement_timeout: '0' }])
      await client.end()
      expect([code, err]).toEqual([
        1,
        expect.stringContaining('names a connection pooler in transaction mode'),
      ])
    } finally {
      folder.discard()
      await pooler.stop()
    }
  })
})
