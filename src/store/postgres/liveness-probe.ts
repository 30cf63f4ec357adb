import type { Client } from 'pg'
import { StoreUnavailable } from '../store-unavailable.ts'
import { openClient } from './connect.ts'
import { isErrorOfRunningServer } from './failure.ts'

/** Milliseconds to wait for a response before the first probe, and between two probes. */
const PROBE_AFTER_MS = 700

/** Timeouts of a probe, in milliseconds. */
export interface ProbeTimeouts {
  readonly connectMs: number
  readonly queryMs: number
  /** For a response that may be in flight, after a probe that failed or found the server idle. */
  readonly inFlightMs: number
}

/** The same timeout for all of a probe; undefined for the default. */
export function probeTimeouts(ms: number | undefined): ProbeTimeouts | undefined {
  return ms === undefined ? undefined : { connectMs: ms, queryMs: ms, inFlightMs: ms }
}

/**
 * Timeouts while calls wait for the response. They are short, so that the calls get `StoreUnavailable` within
 * two seconds.
 */
const WHILE_CALLS_WAIT: ProbeTimeouts = { connectMs: 500, queryMs: 300, inFlightMs: 100 }
/** Timeouts while no call waits. They are long, so that a busy server does not count as unreachable. */
export const TIMEOUTS_WHILE_IDLE: ProbeTimeouts = {
  connectMs: 10_000,
  queryMs: 10_000,
  inFlightMs: 10_000,
}

/** The parts of a connection that a probe uses. */
export interface ProbedConnection {
  /** Id of the server process that serves the connection. */
  readonly processID?: number | null
  /** Closes the connection; its pending queries reject. */
  end(): Promise<void>
}

/**
 * Waits for a response as long as the server works on the statement. A connection can be dead without an
 * error, for example if the machine is lost. Therefore a second connection checks at intervals whether the
 * server still works on the statement. If it does not, or the check fails, the first connection is closed and
 * the promise rejects with `StoreUnavailable`; within two seconds if calls wait.
 */
export async function withLivenessProbe<Answer>(
  connection: ProbedConnection,
  url: string,
  answer: Promise<Answer>,
  timeouts = WHILE_CALLS_WAIT,
): Promise<Answer> {
  let lost: StoreUnavailable | undefined
  let isOver = false
  const giveUp = (): void => {
    lost = new StoreUnavailable('the database cannot be reached: it does not answer')
    void connection.end()
  }
  const probe = async (): Promise<void> => {
    const atWork = await isServerWorking(url, connection.processID ?? 0, timeouts)
    if (isOver) return
    timer = atWork ? setTimeout(() => void probe(), PROBE_AFTER_MS) : setTimeout(giveUp, timeouts.inFlightMs)
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

async function isServerWorking(
  url: string,
  process: number,
  { connectMs, queryMs }: ProbeTimeouts,
): Promise<boolean> {
  let client: Client | undefined
  try {
    client = await openClient(url, {
      connectionTimeoutMillis: connectMs,
      query_timeout: queryMs,
      application_name: 'sluice',
    })
    const { rows } = await client.query<{ state: string | null }>(
      'select state from pg_stat_activity where pid = $1',
      [process],
    )
    // A process that is not listed counts as working: with a connection pooler in between, the process id
    // belongs to the pooler.
    return !rows[0]?.state?.startsWith('idle')
  } catch (error) {
    return isErrorOfRunningServer(error)
  } finally {
    void client?.end().catch(() => {})
  }
}
