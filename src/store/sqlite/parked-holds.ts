import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { HOLD, type HoldRow, type ParkedHold } from '../../domain/records/usage.ts'
import { PARKED } from '../ledger-writes.ts'
import type { Outcome, QueuedOperation } from './messages.ts'

/** Parked holds by the clients of a database that go on with them: those who parked or took them up. */
export class ParkedHolds {
  readonly #clients = new Map<string, string>()
  readonly #all: StatementSync
  readonly #onTakenUp: (client: string, hold: ParkedHold) => void

  /** `onTakenUp` is called when a client takes up a hold that nobody went on with. */
  constructor(db: DatabaseSync, onTakenUp: (client: string, hold: ParkedHold) => void) {
    this.#all = db.prepare(`SELECT * FROM holds WHERE owner = '${PARKED}'`)
    this.#onTakenUp = onTakenUp
  }

  /** Notes what was parked and settled, and leaves out of a list what others go on with. */
  observe(client: string, operations: readonly QueuedOperation[], outcomes: readonly Outcome[]): void {
    for (const [index, [name, input]] of operations.entries()) {
      const outcome = outcomes[index]
      if (outcome && 'failure' in outcome) continue
      if (name === 'parkHold') this.#clients.set((input as { readonly id: string }).id, client)
      else if (name === 'settle') this.#clients.delete((input as { readonly id: string }).id)
      else if (name === 'parkedHolds' && outcome) this.#takeUp(client, outcome.value as ParkedHold[])
    }
  }

  /** The holds of a client that is gone, which others may take up from now on. */
  leave(client: string): ParkedHold[] {
    const rows = this.#all.all() as unknown as HoldRow[]
    const left = rows.filter(({ id }) => this.#clients.get(id) === client).map((row) => HOLD.fromRow(row))
    for (const [id, one] of this.#clients) if (one === client) this.#clients.delete(id)
    return left
  }

  #takeUp(client: string, holds: ParkedHold[]): void {
    const free = holds.filter(({ id }) => !this.#clients.has(id))
    for (const hold of free) {
      this.#clients.set(hold.id, client)
      this.#onTakenUp(client, hold)
    }
    holds.splice(0, holds.length, ...free)
  }
}
