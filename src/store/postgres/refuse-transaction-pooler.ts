import type { Client } from 'pg'
import { DatabaseAddressError } from '../store-unavailable.ts'
import { openClient } from './connect.ts'

const CONNECT_TIMEOUT_MS = 10_000

const SENTENCE =
  'DATABASE_URL names a connection pooler in transaction mode, which gives each transaction another connection; ' +
  'locks, roles and announcements of Sluice belong to a connection: name its port of session mode, or the server itself'

/**
 * Rejects if a pooler gives each transaction another connection to the server: then, what a session sets is
 * lost or reaches others. `docs/databases.md: Poolers`.
 */
export async function refuseTransactionPooler(url: string): Promise<void> {
  const options = { connectionTimeoutMillis: CONNECT_TIMEOUT_MS, application_name: 'sluice' }
  const one = await openClient(url, options)
  let other: Client | undefined
  try {
    other = await openClient(url, options)
    const before = await serverProcess(one)
    // A pooler in transaction mode lends the connection that is free now to this transaction …
    await other.query('begin')
    const lent = await serverProcess(other)
    // … and has another one for the first client meanwhile.
    const after = await serverProcess(one)
    if (before === lent || before !== after) throw new DatabaseAddressError(SENTENCE)
    await other.query('rollback')
  } catch (error) {
    const isRefused = error instanceof Error && /statement pooling mode/.test(error.message)
    throw isRefused ? new DatabaseAddressError(SENTENCE, { cause: error }) : error
  } finally {
    for (const client of [one, other]) client?.end().catch(() => {})
  }
}

async function serverProcess(client: Client): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  return rows[0]?.pid
}
