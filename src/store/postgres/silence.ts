import { Client } from 'pg'
import { StoreUnavailable } from '../store-unavailable.ts'
import { isServing } from './failure.ts'

/** An answer that takes longer is asked after. */
const SILENT_MS = 700
/** How long the question after it may take: to connect, and to be answered. */
const CONNECT_MS = 500
const ANSWER_MS = 300
/** What was said in the meantime may still be on its way. */
const ON_ITS_WAY_MS = 100

/** What is needed of a connection to tell whether it still works. */
export interface Watched {
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
export async function unlessSilent<Answer>(
  connection: Watched,
  url: string,
  answer: Promise<Answer>,
): Promise<Answer> {
  let lost: StoreUnavailable | undefined
  let isOver = false
  const giveUp = (): void => {
    lost = new StoreUnavailable('the database cannot be reached: it does not answer')
    void connection.end()
  }
  const ask = async (): Promise<void> => {
    const atWork = await isAtWork(url, connection.processID ?? 0)
    if (isOver) return
    timer = atWork ? setTimeout(() => void ask(), SILENT_MS) : setTimeout(giveUp, ON_ITS_WAY_MS)
  }
  let timer = setTimeout(() => void ask(), SILENT_MS)
  try {
    return await answer
  } catch (error) {
    throw lost ?? error
  } finally {
    isOver = true
    clearTimeout(timer)
  }
}

async function isAtWork(url: string, process: number): Promise<boolean> {
  const asking = new Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: ANSWER_MS,
    application_name: 'sluice',
  })
  asking.on('error', () => {})
  try {
    await asking.connect()
    const { rows } = await asking.query<{ state: string | null }>(
      'select state from pg_stat_activity where pid = $1',
      [process],
    )
    // Nothing is known of a process that is not there: a pooler between us and the server tells numbers of
    // its own.
    return !rows[0]?.state?.startsWith('idle')
  } catch (error) {
    return isServing(error)
  } finally {
    void asking.end().catch(() => {})
  }
}
