import type { BankConnection } from './bank-connection.ts'

/** Minimum milliseconds between two reads of the nodes' names. */
const READ_INTERVAL_MS = 2_000

/** The nodes that run: those that reported to the bank within the last ten seconds. */
export class LiveNodes {
  readonly #connection: BankConnection
  #names: readonly string[]
  #readMs = Number.NEGATIVE_INFINITY

  /** `own` is the name of this node in the bank. */
  constructor(connection: BankConnection, own: string) {
    this.#connection = connection
    this.#names = [own]
  }

  /** Names of the running nodes. While the bank is unreachable, these are the last known names. */
  get names(): readonly string[] {
    return this.#names
  }

  /** Makes the next `refresh` read the names again, because a node has started or stopped. */
  expire(): void {
    this.#readMs = Number.NEGATIVE_INFINITY
  }

  /**
   * Reads the names of the live nodes, unless they were read in the last two seconds. Rejects with
   * `StoreUnavailable`.
   */
  async refresh(): Promise<void> {
    const nowMs = performance.now()
    if (nowMs - this.#readMs < READ_INTERVAL_MS) return
    // Each report sets `expires` to 60 s later, so a node with more than 50 s left has reported within 10 s.
    const rows = await this.#connection.query<{ node: string }>(
      "select node from nodes where expires > now() + interval '50 seconds' order by node",
      [],
      'nodes',
    )
    this.#names = rows.map(({ node }) => node)
    this.#readMs = nowMs
  }
}
