import type { SettledCall } from '../../domain/records/usage.ts'
import { accountsOfCall } from '../../store/bank.ts'
import type { NodeFile, OutboxEntry } from '../../store/node-file.ts'

type Outbox = Pick<NodeFile, 'write'>

/**
 * Outbox of a process whose calls are charged in the bank by the same commit that records them. Its entries
 * therefore charge nothing. Each entry lists accounts whose balances have changed. Until the entry is read,
 * further calls of the same accounts add no entry.
 */
export class ChangedAccountsOutbox implements Outbox {
  readonly #entries = new Map<string, OutboxEntry>()
  /** Entries that were read and are not reported yet. */
  readonly #read = new Map<string, OutboxEntry>()
  #lastPlace = 0

  /** Adds an entry with the accounts of a call whose charge is durable. */
  add(call: SettledCall): void {
    const { token_id, user_id, budgets } = call
    const key = `${token_id} ${budgets}`
    if (this.#entries.has(key)) return
    this.#lastPlace += 1
    const row = JSON.stringify(accountsOfCall(call))
    this.#entries.set(key, { place: this.#lastPlace, token_id, user_id, quota: 0, budgets, row })
  }

  /**
   * Returns entries that are not reported to the bank yet if the name is `outbox`; with any other name,
   * removes reported entries.
   */
  readonly write = ((
    name: string,
    input: { readonly limit?: number; readonly places?: readonly number[] },
  ) => {
    if (name === 'outbox') return Promise.resolve(this.#page(input.limit ?? 0))
    const places = new Set(input.places)
    for (const [key, { place }] of this.#read) if (places.has(place)) this.#read.delete(key)
    return Promise.resolve()
  }) as Outbox['write']

  #page(limit: number): OutboxEntry[] {
    for (const [key, entry] of this.#entries) {
      if (this.#read.size >= limit) break
      // The accounts of an entry that was read before may have been charged again since.
      this.#read.delete(key)
      this.#read.set(key, entry)
      this.#entries.delete(key)
    }
    return [...this.#read.values()].toSorted((one, other) => one.place - other.place)
  }
}
