import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { createConnection } from 'mysql2/promise'
import { freePort } from './port.ts'

/** A MariaDB server for one test, with a user `reader` whose password is `p@ss word`. */
export interface MariadbServer {
  readonly port: number
  /** Runs one statement as the owner of the server, with names in double quotes. */
  sql(statement: string): Promise<readonly Readonly<Record<string, unknown>>[]>
  /** Deletes all tables. */
  empty(): Promise<void>
  /** Stops the server and deletes its files. */
  stop(): Promise<void>
}

/** The database that every server has. */
export const DATABASE = 'newapi'

const CREATE = `create database ${DATABASE} character set utf8mb4`
const SERVER = 'mariadbd'
const INSTALL = 'mariadb-install-db'
const START_LIMIT_MS = 120_000

/** The reason why no server can run here; undefined where one can. */
const NO_MARIADB: string | undefined = [SERVER, INSTALL].some(
  (name) => spawnSync(name, ['--help'], { timeout: 60_000 }).error,
)
  ? `there is no ${SERVER} on this machine (Debian: apt-get install mariadb-server)`
  : undefined

/**
 * Whether to skip tests that need a MariaDB server of their own, which prints a line that names them. Where
 * results are counted (`CI=true`) nothing is skipped, and the tests fail.
 */
export function withoutMariadb(tests: string): boolean {
  if (NO_MARIADB === undefined || process.env['CI'] === 'true') return false
  console.log(`${tests}: left out, ${NO_MARIADB}`)
  return true
}

/** Starts a server on 127.0.0.1. The caller stops it. */
export async function startMariadbServer(): Promise<MariadbServer> {
  if (NO_MARIADB !== undefined) throw new Error(NO_MARIADB)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-mariadb-'))
  const data = ['--no-defaults', `--datadir=${folder}/data`, `--user=${userInfo().username}`]
  const port = await freePort()
  const made = spawnSync(INSTALL, [...data, '--auth-root-authentication-method=normal', '--skip-test-db'], {
    encoding: 'utf8',
    timeout: 240_000,
  })
  if (made.status !== 0) throw new Error(`${INSTALL} failed:\n${made.stdout}\n${made.stderr}`)
  const child = spawn(
    SERVER,
    [...data, `--port=${port}`, '--bind-address=127.0.0.1', `--socket=${folder}/socket`, '--skip-log-bin'],
    { stdio: 'ignore' },
  )
  const sql = async (statement: string, database?: string): Promise<never> => {
    const connection = await createConnection({
      host: '127.0.0.1',
      port,
      user: 'root',
      ...(database !== undefined && { database }),
    })
    try {
      await connection.query("set session sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'")
      const [rows] = await connection.query(statement)
      return rows as never
    } finally {
      await connection.end()
    }
  }
  await untilAnswering(child, () => sql('select 1'))
  await sql(CREATE)
  await sql("create user reader@'%' identified by 'p@ss word'")
  await sql(`grant select on ${DATABASE}.* to reader@'%'`)
  return {
    port,
    sql: (statement) => sql(statement, DATABASE),
    async empty() {
      await sql(`drop database ${DATABASE}`)
      await sql(CREATE)
    },
    async stop() {
      const gone = new Promise((resolve) => child.once('exit', resolve))
      if (child.exitCode === null && child.signalCode === null && child.kill('SIGKILL')) await gone
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function untilAnswering(child: ChildProcess, ask: () => Promise<unknown>): Promise<void> {
  const deadline = performance.now() + START_LIMIT_MS
  for (;;) {
    const failure = await ask().then(
      () => undefined,
      (error: unknown) => error,
    )
    if (failure === undefined) return
    if (child.exitCode !== null || performance.now() > deadline)
      throw new Error(`${SERVER} did not start: ${inspect(failure)}`)
    await sleep(50)
  }
}
