import type { PostgresPool, PostgresPoolClient } from 'kysely'
import { Pool, types } from 'pg'
import { refuseNul } from '../refuse-nul.ts'

/** What is asked of PostgreSQL is small: a few connections do, and leave room for other nodes. */
const CONNECTIONS = 5
const CONNECT_MS = 5_000
/** A statement that takes longer is given up, by the server and, should that be gone, here. */
const STATEMENT_MS = 10_000
const IDLE_IN_TRANSACTION_MS = 30_000

/** The number of PostgreSQL's type of 64-bit integers. */
const INT8: number = types.builtins.INT8

/** Connections to the database of that URL; none is made before it is needed. */
export function connectionPool(url: string, statementMs = STATEMENT_MS): PostgresPool {
  const pool = new Pool({
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: statementMs,
    query_timeout: statementMs + CONNECT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    keepAlive: true,
    application_name: 'sluice',
    types: { getTypeParser: (type, format) => parserOf(type, format) as never },
  })
  // A connection that breaks while nobody uses it is replaced at the next use; unheard, it would end the process.
  pool.on('error', () => {})
  return {
    options: {},
    connect: async () => guarded(await pool.connect()),
    end: () => pool.end(),
  }
}

function guarded(client: PostgresPoolClient): PostgresPoolClient {
  return {
    query(sql: unknown, parameters?: readonly unknown[]) {
      refuseNul(parameters ?? [])
      return client.query(sql as string, parameters ?? []) as never
    },
    release: (destroy) => client.release(destroy),
  }
}

// 64 bits arrive as text, lest a number be rounded; what a number holds exactly is made one, the rest refused.
function parserOf(type: number, format: 'text' | 'binary' | undefined): unknown {
  return type === INT8 && format !== 'binary' ? wholeNumber : types.getTypeParser(type, format)
}

function wholeNumber(text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number)) throw new RangeError(`${text} is beyond what can be counted here (2^53)`)
  return number
}
