import { Client, type QueryResult } from 'pg'
import { StoreUnavailable } from '../store-unavailable.ts'
import { mapDatabaseError } from './failure.ts'
import { RELAY_ROLE } from './relay-role.ts'
import { withLivenessProbe } from './liveness-probe.ts'

/** Timeout of connecting. */
const CONNECT_TIMEOUT_MS = 1_500
/** Timeout of a statement on the server; the next report repeats it. */
const STATEMENT_TIMEOUT_MS = 2_500
/** Timeout of a statement on this side. */
const QUERY_TIMEOUT_MS = 3_000

/**
 * Connection of the relay to the bank, made when it is first needed and again after it is lost. Uses a role
 * that can move money through the bank's functions only, if the role exists.
 */
export class BankConnection {
  readonly #url: string
  readonly #hasRole: boolean
  #client: Promise<Client> | undefined
  #isClosed = false

  constructor(url: string, { hasRole }: { readonly hasRole: boolean }) {
    this.#url = url
    this.#hasRole = hasRole
  }

  /**
   * Runs one statement; a named one is prepared once. Rejects with `StoreUnavailable` within two seconds if
   * the server is out of reach.
   */
  async query<Row extends object>(text: string, values: readonly unknown[], name?: string): Promise<Row[]> {
    if (this.#isClosed) throw new StoreUnavailable('the connection to the bank is closed')
    const connecting = (this.#client ??= this.#connect())
    try {
      const client = await connecting
      const asked = client.query<Row>({ text, values: [...values], ...(name && { name }) })
      const { rows }: QueryResult<Row> = await withLivenessProbe(client, this.#url, asked)
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

  // Discards a connection that failed or timed out; late responses on it are ignored.
  #abandon(connecting: Promise<Client>): void {
    this.#client = undefined
    void connecting.then(
      (client) => client.end().catch(() => {}),
      () => {},
    )
  }

  async #connect(): Promise<Client> {
    const client = new Client({
      connectionString: this.#url,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
      application_name: 'sluice bank',
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
      await client.connect()
      if (this.#hasRole) await withLivenessProbe(client, this.#url, client.query(`set role ${RELAY_ROLE}`))
      return client
    } catch (error) {
      client.end().catch(() => {})
      throw error
    }
  }
}
