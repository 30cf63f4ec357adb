import type { ConnectionOptions } from 'node:tls'
import type { PostgresPool, PostgresPoolClient } from 'kysely'
import { Pool, type PoolClient, types } from 'pg'
import { refuseNul } from '../refuse-nul.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import { connectInOrder, type ConnectionPlan, connectionPlan, END_IF_UNREACHABLE } from './connect.ts'
import { type ProbedConnection, type ProbeTimeouts, withLivenessProbe } from './liveness-probe.ts'

/** Maximum number of connections of one node. Few are enough, because calls do not use them. */
const MAX_CONNECTIONS = 5
/** Timeout in milliseconds for connecting, and for waiting until a connection is free. */
export const CONNECT_TIMEOUT_MS = 1_500
/** Timeout of a statement on the server, in milliseconds. */
const STATEMENT_TIMEOUT_MS = 10_000
/** Milliseconds after the server's timeout of a statement at which the client gives up waiting for it. */
const QUERY_GRACE_MS = 5_000
const IDLE_TRANSACTION_TIMEOUT_MS = 30_000

/** OID of PostgreSQL's 64-bit integer. */
const INT8: number = types.builtins.INT8

/** Timeouts of a pool, each of which has a default. */
export interface PoolTimeouts {
  /** Timeout in milliseconds for connecting, and for waiting until a connection is free. */
  readonly connectMs?: number
  /** Timeout of a statement on the server, in milliseconds. */
  readonly statementMs?: number
  /** Timeout in milliseconds of waiting for a row or table that another session has locked; that of the statement by default. */
  readonly lockMs?: number
  readonly probing?: ProbeTimeouts
}

/**
 * Creates a pool of connections to the database at this URL. Connections are opened when needed. If the
 * server is unreachable, queries reject within two seconds, or after the timeouts in `probing`.
 */
export function connectionPool(
  url: string,
  {
    connectMs = CONNECT_TIMEOUT_MS,
    statementMs = STATEMENT_TIMEOUT_MS,
    lockMs = statementMs,
    probing,
  }: PoolTimeouts = {},
): PostgresPool {
  const timeouts = {
    statement_timeout: statementMs,
    lock_timeout: lockMs,
    idle_in_transaction_session_timeout: IDLE_TRANSACTION_TIMEOUT_MS,
  }
  const options = { connectionTimeoutMillis: connectMs, keepAlive: true, application_name: 'sluice' }
  const open = ({ connectionString, start }: ConnectionPlan, ssl: ConnectionOptions | false): Pool => {
    const made = new Pool({
      ...options,
      connectionString,
      ssl,
      max: MAX_CONNECTIONS,
      query_timeout: statementMs + QUERY_GRACE_MS,
      types: { getTypeParser: (type, format) => parserOf(type, format) as never },
      onConnect: (client) =>
        client.query(start === undefined ? END_IF_UNREACHABLE : `${start}; ${END_IF_UNREACHABLE}`),
    })
    // If an idle connection breaks, the pool replaces it, or the next query on it fails. Without these
    // handlers, the error event of the connection would end the process.
    made.on('error', () => {})
    made.on('connect', (client) => void client.on('error', () => {}))
    return made
  }
  const pools = new Map<ConnectionOptions | false, Pool>()
  let plan: ConnectionPlan | undefined
  const pooled = async (): Promise<PoolClient> => {
    const present = (plan ??= connectionPlan(url, timeouts))
    return connectInOrder(present, async (ssl) => {
      const pool = pools.get(ssl) ?? open(present, ssl)
      pools.set(ssl, pool)
      const client = await pool.connect()
      // What works is tried first from now on. The server may be restarted with another setting.
      plan = { ...present, tls: [ssl, ...present.tls.filter((other) => other !== ssl)] }
      return client
    })
  }
  const returned = new WeakMap<PoolClient, number>()
  let silentSince = -1
  const connect = async (): Promise<PostgresPoolClient> => {
    for (;;) {
      const client = await pooled()
      // If one connection stopped responding, those that have been idle since before then are probably dead
      // too, and are closed.
      if ((returned.get(client) ?? Infinity) > silentSince) {
        const onRelease = (fellSilent: boolean): void => {
          if (fellSilent) silentSince = performance.now()
          else returned.set(client, performance.now())
        }
        return withLivenessProbes(client, url, onRelease, probing)
      }
      client.release(true)
    }
  }
  return {
    options: {},
    connect,
    end: async () => void (await Promise.all([...pools.values()].map((pool) => pool.end()))),
  }
}

function withLivenessProbes(
  client: PoolClient,
  url: string,
  onRelease: (fellSilent: boolean) => void,
  probing: ProbeTimeouts | undefined,
): PostgresPoolClient {
  let silent: StoreUnavailable | undefined
  const runQuery = async (sql: string, parameters: readonly unknown[]): Promise<unknown> => {
    refuseNul(parameters)
    if (silent) throw silent
    try {
      return await withLivenessProbe(
        client as unknown as ProbedConnection,
        url,
        client.query(sql, [...parameters]),
        probing,
      )
    } catch (error) {
      if (error instanceof StoreUnavailable) silent = error
      throw error
    }
  }
  return {
    query: (sql: unknown, parameters?: readonly unknown[]) =>
      runQuery(sql as string, parameters ?? []) as never,
    release(destroy) {
      onRelease(silent !== undefined)
      client.release(destroy ?? silent !== undefined)
    },
  }
}

// 64-bit integers arrive as texts. They are converted to numbers; integers beyond 2^53 throw an error.
function parserOf(type: number, format: 'text' | 'binary' | undefined): unknown {
  return type === INT8 && format !== 'binary' ? wholeNumber : types.getTypeParser(type, format)
}

function wholeNumber(text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number)) throw new RangeError(`${text} is beyond the supported range (2^53)`)
  return number
}
