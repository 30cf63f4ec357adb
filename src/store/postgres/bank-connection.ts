import { createHash, randomUUID } from 'node:crypto'
import type { Client, QueryResult } from 'pg'
import { NodeNameTaken, StoreUnavailable } from '../store-unavailable.ts'
import { isLockTimeout, mapDatabaseError } from './failure.ts'
import { RELAY_ROLE } from './relay-role.ts'
import { END_IF_UNREACHABLE, openClient } from './connect.ts'
import { probeTimeouts, withLivenessProbe } from './liveness-probe.ts'

/** Timeout for connecting, in milliseconds. */
const CONNECT_TIMEOUT_MS = 1_500
/**
 * Timeout of a statement on the server, in milliseconds. The next report of the node repeats what a failed
 * statement should have done.
 */
const STATEMENT_TIMEOUT_MS = 2_500
/** Timeout after which the client gives up a statement, in milliseconds. */
const QUERY_TIMEOUT_MS = 3_000
/**
 * Milliseconds that an earlier database session of this node has to end before the node's name counts as
 * taken.
 */
const NAME_TIMEOUT_MS = 1_000

interface BankConnectionOptions {
  /** Whether the restricted database role exists and is used. */
  readonly hasRole: boolean
  /** Name of this node. It is locked in the database while this process is connected. */
  readonly node?: string
  /** Called after a connection was opened again, before its first statement. */
  readonly onReconnected?: () => void
  /** Timeout in milliseconds for connecting, of statements and of probes, for machines that may be slow. */
  readonly timeoutMs?: number
}

/**
 * Connection to the bank, the functions in the database that lend quota to nodes and book charges. It is
 * opened when first needed, and again after it was lost. If the restricted role exists, the connection uses
 * it, so that it can change balances only through these functions.
 */
export class BankConnection {
  readonly #url: string
  readonly #hasRole: boolean
  readonly #node: string | undefined
  readonly #onReconnected: (() => void) | undefined
  readonly #timeoutMs: number | undefined
  readonly #application = `sluice bank ${randomUUID()}`
  #client: Promise<Client> | undefined
  #isClosed = false
  #hasConnected = false

  constructor(url: string, { hasRole, node, onReconnected, timeoutMs }: BankConnectionOptions) {
    this.#url = url
    this.#hasRole = hasRole
    this.#node = node
    this.#onReconnected = onReconnected
    this.#timeoutMs = timeoutMs
  }

  /**
   * Runs one statement. A statement with a name is prepared only once. Rejects with `StoreUnavailable` within
   * two seconds if the server is unreachable, and with `NodeNameTaken` while another process has the name of this
   * node.
   */
  async query<Row extends object>(text: string, values: readonly unknown[], name?: string): Promise<Row[]> {
    if (this.#isClosed) throw new StoreUnavailable('the connection to the bank is closed')
    const connecting = (this.#client ??= this.#connect())
    try {
      const client = await connecting
      const query = client.query<Row>({ text, values: [...values], ...(name && { name }) })
      const { rows }: QueryResult<Row> = await this.#probed(client, query)
      return rows
    } catch (error) {
      const blame = mapDatabaseError(error)
      if (blame instanceof StoreUnavailable && this.#client === connecting) this.#abandon(connecting)
      throw blame
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const client = await this.#client?.catch(() => undefined)
    this.#client = undefined
    await client?.end().catch(() => {})
  }

  #probed<Answer>(client: Client, answer: Promise<Answer>): Promise<Answer> {
    return withLivenessProbe(client, this.#url, answer, probeTimeouts(this.#timeoutMs))
  }

  // Closes a connection that failed or timed out. Responses that arrive on it later are ignored.
  #abandon(connecting: Promise<Client>): void {
    this.#client = undefined
    void connecting.then(
      (client) => client.end().catch(() => {}),
      () => {},
    )
  }

  async #connect(): Promise<Client> {
    const client = await openClient(this.#url, {
      connectionTimeoutMillis: this.#timeoutMs ?? CONNECT_TIMEOUT_MS,
      timeouts: { statement_timeout: this.#timeoutMs ?? STATEMENT_TIMEOUT_MS },
      query_timeout: this.#timeoutMs ?? QUERY_TIMEOUT_MS,
      keepAlive: true,
      application_name: this.#application,
    })
    const lost = (): void => {
      void this.#client?.then(
        (current) => {
          if (current === client) this.#client = undefined
        },
        () => {},
      )
    }
    client.on('error', lost)
    client.on('end', lost)
    try {
      await this.#takeName(client)
      if (this.#hasRole) await this.#probed(client, client.query(`set role ${RELAY_ROLE}`))
      if (this.#hasConnected) this.#onReconnected?.()
      this.#hasConnected = true
      return client
    } catch (error) {
      client.end().catch(() => {})
      throw error
    }
  }

  // Takes an advisory lock for the database session, because two processes with the same name would spend the
  // same borrowed quota.
  async #takeName(client: Client): Promise<void> {
    if (this.#node === undefined) return
    const key = createHash('sha256').update(`sluice node ${this.#node}`).digest().readBigInt64BE()
    // An earlier session of this process is ended by the query below.
    const statements = `
      ${END_IF_UNREACHABLE};
      select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = '${this.#application}' and pid <> pg_backend_pid();
      begin;
      set local lock_timeout = ${NAME_TIMEOUT_MS};
      select pg_advisory_lock(${key});
      commit`
    try {
      await this.#probed(client, client.query(statements))
    } catch (error) {
      if (!isLockTimeout(error)) throw error
      throw new NodeNameTaken(
        'another gateway runs as this node: one of their data folders is a copy of the other',
        {
          cause: error,
        },
      )
    }
  }
}
