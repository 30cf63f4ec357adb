import type { AccountName, LoanQueuePlace } from '../bank.ts'

/** Returns the free quota of an account, in quota units. */
type FreeOf = (account: AccountName) => number

/** A call that waits for quota. */
interface Entry {
  readonly order: number
  /**
   * Quota units that the call needs on each of the accounts, because its process has borrowed too little
   * there.
   */
  readonly amount: number
  readonly accounts: readonly AccountName[]
}

/**
 * Calls of all borrowers that wait for quota, in order of arrival: `docs/ledger.md: Waiting for other calls`. The bank
 * in PostgreSQL has the same rules (`postgres/bank/queue.sql`).
 */
export class LoanQueue {
  readonly #borrowers = new Map<string, Map<number, Entry>>()
  /** The waiting calls on each account, by order of arrival. */
  readonly #lines = new Map<AccountName, Entry[]>()
  #arrivals = 0

  /** Whether any calls wait for quota of an account. */
  isAwaited(account: AccountName): boolean {
    return this.#lines.has(account)
  }

  /**
   * Whether a request must let other calls go first, although the amounts it needs are free. These are calls
   * that arrived before it and can be admitted now; and, if the request itself waits, calls that arrived
   * before it and lack quota of the same account.
   */
  isBehind(
    { order = Number.POSITIVE_INFINITY, waits }: LoanQueuePlace,
    needs: readonly { readonly account: AccountName; readonly need: number }[],
    freeOf: FreeOf,
  ): boolean {
    for (const { account, need } of needs) {
      if (waits && this.#firstShort(account, freeOf) < order) return true
      const free = freeOf(account)
      let taken = need
      for (const entry of this.#lines.get(account) ?? []) {
        if (entry.order >= order) break
        // An earlier call may have to wait for other accounts, or behind other calls; then its amount is not
        // counted.
        if (entry.accounts.every((one) => this.#firstShort(one, freeOf) > entry.order)) taken += entry.amount
        if (taken > free) return true
      }
    }
    return false
  }

  /**
   * Order of the first waiting call for which too little quota of the account is free; infinite if there is
   * none.
   */
  #firstShort(account: AccountName, freeOf: FreeOf): number {
    const free = freeOf(account)
    const first = this.#lines.get(account)?.find(({ amount }) => amount > free)
    return first?.order ?? Number.POSITIVE_INFINITY
  }

  /** Adds a call, or replaces the amount that it needs; returns its order. */
  put(borrower: string, place: LoanQueuePlace, accounts: readonly AccountName[]): number {
    this.remove(borrower, place.ticket)
    const order = place.order ?? (this.#arrivals += 1)
    const entry = { order, amount: place.amount, accounts }
    const entries = this.#borrowers.get(borrower) ?? new Map<number, Entry>()
    this.#borrowers.set(borrower, entries.set(place.ticket, entry))
    for (const account of accounts) {
      const line = this.#lines.get(account) ?? []
      const at = line.findLastIndex((before) => before.order < order) + 1
      line.splice(at, 0, entry)
      this.#lines.set(account, line)
    }
    return order
  }

  /** Removes a call, if it waits. */
  remove(borrower: string, ticket: number): void {
    const entries = this.#borrowers.get(borrower)
    const entry = entries?.get(ticket)
    if (!entries || !entry) return
    entries.delete(ticket)
    if (entries.size === 0) this.#borrowers.delete(borrower)
    for (const account of entry.accounts) {
      const line = (this.#lines.get(account) ?? []).filter((one) => one !== entry)
      if (line.length > 0) this.#lines.set(account, line)
      else this.#lines.delete(account)
    }
  }

  /** Removes all calls of a borrower. */
  drop(borrower: string): void {
    for (const ticket of this.#borrowers.get(borrower)?.keys() ?? []) this.remove(borrower, ticket)
  }
}
