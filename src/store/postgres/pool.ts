import type { PostgresPool, PostgresPoolClient } from 'kysely'
import { Pool, type PoolClient, types } from 'pg'
import { refuseNul } from '../refuse-nul.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import { withLivenessProbe, type ProbedConnection } from './liveness-probe.ts'

/** What is asked of PostgreSQL is small: a few connections do, and leave room for other nodes. */
const MAX_CONNECTIONS = 5
/** To be connected, or to be given a connection that others use. */
const CONNECT_TIMEOUT_MS = 1_500
/** A statement that takes longer is given up, by the server and, should that not do it, here. */
const STATEMENT_TIMEOUT_MS = 10_000
const QUERY_GRACE_MS = 5_000
const IDLE_TRANSACTION_TIMEOUT_MS = 30_000

/** The number of PostgreSQL's type of 64-bit integers. */
const INT8: number = types.builtins.INT8

/**
 * Connections to the database of that URL; none is made before it is needed. Where it cannot be reached, what
 * is asked is rejected within two seconds.
 */
export function connectionPool(url: string, statementMs = STATEMENT_TIMEOUT_MS): PostgresPool {
  const pool = new Pool({
    connectionString: url,
    max: MAX_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: statementMs,
    query_timeout: statementMs + QUERY_GRACE_MS,
    idle_in_transaction_session_timeout: IDLE_TRANSACTION_TIMEOUT_MS,
    keepAlive: true,
    application_name: 'sluice',
    types: { getTypeParser: (type, format) => parserOf(type, format) as never },
  })
  // A connection that breaks while nothing is asked of it fails the next use, or is replaced; unheard, it
  // would end the process.
  pool.on('error', () => {})
  pool.on('connect', (client) => void client.on('error', () => {}))
  const returned = new WeakMap<PoolClient, number>()
  let silentSince = -1
  const connect = async (): Promise<PostgresPoolClient> => {
    for (;;) {
      const client = await pool.connect()
      // Those that were idle when one fell silent are likely to be as dead.
      if ((returned.get(client) ?? Infinity) > silentSince) {
        return withLivenessProbes(client, url, (silent) => {
          if (silent) silentSince = performance.now()
          else returned.set(client, performance.now())
        })
      }
      client.release(true)
    }
  }
  return { options: {}, connect, end: () => pool.end() }
}

function withLivenessProbes(
  client: PoolClient,
  url: string,
  onRelease: (fellSilent: boolean) => void,
): PostgresPoolClient {
  let silent: StoreUnavailable | undefined
  const ask = async (sql: string, parameters: readonly unknown[]): Promise<unknown> => {
    refuseNul(parameters)
    if (silent) throw silent
    try {
      return await withLivenessProbe(client as unknown as ProbedConnection, url, client.query(sql, [...parameters]))
    } catch (error) {
      if (error instanceof StoreUnavailable) silent = error
      throw error
    }
  }
  return {
    query: (sql: unknown, parameters?: readonly unknown[]) => ask(sql as string, parameters ?? []) as never,
    release(destroy) {
      onRelease(silent !== undefined)
      client.release(destroy ?? silent !== undefined)
    },
  }
}

// 64 bits arrive as text, lest a number be rounded; what a number holds exactly is made one, the rest
// refused.
function parserOf(type: number, format: 'text' | 'binary' | undefined): unknown {
  return type === INT8 && format !== 'binary' ? wholeNumber : types.getTypeParser(type, format)
}

function wholeNumber(text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number)) throw new RangeError(`${text} is beyond what can be counted here (2^53)`)
  return number
}
