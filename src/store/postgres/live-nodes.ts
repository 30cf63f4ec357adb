import type { BankConnection } from './bank-connection.ts'

/** Interval at which the names are read again. */
const READ_INTERVAL_MS = 2_000

/** Running nodes, by the reports that the bank has received from them in the last ten seconds. */
export class LiveNodes {
  readonly #connection: BankConnection
  #names: readonly string[]
  #readMs = Number.NEGATIVE_INFINITY

  /** `own` is the name of this node in the bank. */
  constructor(connection: BankConnection, own: string) {
    this.#connection = connection
    this.#names = [own]
  }

  /** The names; while the bank is unreachable, the last known ones. */
  get names(): readonly string[] {
    return this.#names
  }

  /** Makes the next `refresh` read again, because a node has started or stopped. */
  expire(): void {
    this.#readMs = Number.NEGATIVE_INFINITY
  }

  /** Reads the names, unless that was done recently. Rejects with `StoreUnavailable`. */
  async refresh(): Promise<void> {
    const nowMs = performance.now()
    if (nowMs - this.#readMs < READ_INTERVAL_MS) return
    // A report extends the time until which a node counts as running by 60 s.
    const rows = await this.#connection.query<{ node: string }>(
      "select node from nodes where expires > now() + interval '50 seconds' order by node",
      [],
      'nodes',
    )
    this.#names = rows.map(({ node }) => node)
    this.#readMs = nowMs
  }
}
