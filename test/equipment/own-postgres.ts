import { randomBytes } from 'node:crypto'
import process from 'node:process'
import { Client } from 'pg'
import { startPostgresChild } from '../postgres-child.ts'
import type { PostgresOrder } from '../postgres-process.ts'
import { freePort } from './port.ts'

/**
 * A PostgreSQL database for one test. The test may crash its server, unless `TEST_DATABASE_URL` names one.
 */
export interface OwnPostgres {
  readonly url: string
  /** The port on 127.0.0.1 or on the named server. */
  readonly port: number
  /** Runs one statement; numeric columns are numbers. */
  sql<Row = Record<string, unknown>>(statement: string): Promise<Row[]>
  /** Runs `pg_ctl stop -m immediate`: the server stops at once, and committed data stays. */
  crash(): Promise<void>
  start(): Promise<void>
  /** Sends SIGSTOP to every process of the server. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Stops the server, or drops the database. */
  stop(): Promise<void>
}

/** The named server, which tests may not crash. */
const NAMED = process.env['TEST_DATABASE_URL'] || undefined

/** Whether to skip the tests of that name, which crash PostgreSQL; skipping prints a line. */
export function withoutCrashes(tests: string): boolean {
  if (NAMED !== undefined)
    console.log(`${tests}: left out, the server of TEST_DATABASE_URL is not ours to crash`)
  return NAMED !== undefined
}

/** Starts a server, or creates a database on the named one. The caller stops it. */
export function startOwnPostgres(): Promise<OwnPostgres> {
  return NAMED === undefined ? startServer() : makeDatabase(NAMED)
}

async function startServer(): Promise<OwnPostgres> {
  const port = await freePort()
  const child = await startPostgresChild(port)
  if ('reason' in child.answer) throw new Error(`PostgreSQL does not start here: ${child.answer.reason}`)
  const { url } = child.answer
  const order = (word: PostgresOrder) => (): Promise<void> => child.order(word)
  return {
    url,
    port,
    sql: (statement) => run(url, statement),
    crash: order('crash'),
    start: order('start'),
    pause: order('pause'),
    resume: order('resume'),
    stop: () => child.stop(),
  }
}

async function makeDatabase(server: string): Promise<OwnPostgres> {
  const name = `${process.env['TEST_DATABASE_PREFIX'] ?? 'sluice_'}own_${randomBytes(6).toString('hex')}`
  await run(server, `create database ${name}`)
  const url = new URL(server)
  url.pathname = `/${name}`
  const notOurs = (): Promise<never> => Promise.reject(new Error('this server is not ours to ill-treat'))
  return {
    url: url.href,
    port: Number(url.port || 5432),
    sql: (statement) => run(url.href, statement),
    crash: notOurs,
    start: notOurs,
    pause: notOurs,
    resume: notOurs,
    stop: async () => void (await run(server, `drop database ${name} with (force)`)),
  }
}

const INT8 = 20
const NUMERIC = 1700

async function run<Row>(url: string, statement: string): Promise<Row[]> {
  const client = new Client({ connectionString: url })
  client.on('error', () => {})
  client.setTypeParser(INT8, Number)
  client.setTypeParser(NUMERIC, Number)
  await client.connect()
  try {
    return (await client.query(statement)).rows as Row[]
  } finally {
    await client.end()
  }
}
