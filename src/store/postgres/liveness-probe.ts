import { Client } from 'pg'
import { StoreUnavailable } from '../store-unavailable.ts'
import { isServing } from './failure.ts'

/** An answer that takes longer is asked after. */
const PROBE_AFTER_MS = 700
/** How long the question after it may take: to connect, and to be answered. */
const PROBE_CONNECT_TIMEOUT_MS = 500
const PROBE_TIMEOUT_MS = 300
/** What was said in the meantime may still be on its way. */
const IN_FLIGHT_MS = 100

/** What is needed of a connection to tell whether it still works. */
export interface ProbedConnection {
  /** Of the server's process behind it. */
  readonly processID?: number | null
  /** Closes it; what was asked over it is rejected. */
  end(): Promise<void>
}

/**
 * Waits for an answer of the server, for as long as the server works on it. A connection can fall silent
 * without an end: a machine is gone, a router forgot it. So another connection asks after the statement,
 * again and again. Where none can be made, or the server does nothing for this one, it is closed and rejected
 * with `StoreUnavailable`, within two seconds.
 */
export async function withLivenessProbe<Answer>(
  connection: ProbedConnection,
  url: string,
  answer: Promise<Answer>,
): Promise<Answer> {
  let lost: StoreUnavailable | undefined
  let isOver = false
  const giveUp = (): void => {
    lost = new StoreUnavailable('the database cannot be reached: it does not answer')
    void connection.end()
  }
  const probe = async (): Promise<void> => {
    const atWork = await isServerWorking(url, connection.processID ?? 0)
    if (isOver) return
    timer = atWork ? setTimeout(() => void probe(), PROBE_AFTER_MS) : setTimeout(giveUp, IN_FLIGHT_MS)
  }
  let timer = setTimeout(() => void probe(), PROBE_AFTER_MS)
  try {
    return await answer
  } catch (error) {
    throw lost ?? error
  } finally {
    isOver = true
    clearTimeout(timer)
  }
}

async function isServerWorking(url: string, process: number): Promise<boolean> {
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: PROBE_CONNECT_TIMEOUT_MS,
    query_timeout: PROBE_TIMEOUT_MS,
    application_name: 'sluice',
  })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ state: string | null }>(
      'select state from pg_stat_activity where pid = $1',
      [process],
    )
    // Nothing is known of a process that is not there: a pooler between us and the server tells numbers of
    // its own.
    return !rows[0]?.state?.startsWith('idle')
  } catch (error) {
    return isServing(error)
  } finally {
    void client.end().catch(() => {})
  }
}
