import { budgetOwnerOf } from '../../domain/budget.ts'
import type { AccountName } from '../bank.ts'

/** Lease of one borrower on one account: quota units lent to a process. */
interface Lease {
  /** Quota units that were lent and are not spent yet. */
  amount: number
  /**
   * Part of `amount` that was lent since the borrower last reported how much it needs. The borrower may not
   * need it.
   */
  spare: number
  /** Charges, in quota units, that were paid from the lease and not reported to the borrower yet. */
  unreported: number
}

/** The leases on one account. */
interface LentAccount {
  epoch: number
  leased: number
  readonly leases: Map<string, Lease>
}

/**
 * Records what processes have borrowed from the accounts of their common database. It is only in memory,
 * because it belongs to the process that owns the database, and no borrower runs longer than that process.
 */
export class LeaseBook {
  readonly #accounts = new Map<AccountName, LentAccount>()

  epoch(account: AccountName): number {
    return this.#accounts.get(account)?.epoch ?? 0
  }

  /** Quota units that are lent to all borrowers of an account. */
  leased(account: AccountName): number {
    return this.#accounts.get(account)?.leased ?? 0
  }

  amount(account: AccountName, borrower: string): number {
    return this.#accounts.get(account)?.leases.get(borrower)?.amount ?? 0
  }

  /** The accounts from which a borrower has borrowed. */
  accountsOf(borrower: string): AccountName[] {
    return [...this.#accounts].flatMap(([name, { leases }]) => (leases.has(borrower) ? [name] : []))
  }

  /** The accounts of an owner's budgets from which somebody has borrowed. */
  budgetsOf(owner: string): AccountName[] {
    return [...this.#accounts.keys()].filter((name) => name.startsWith('b:') && budgetOwnerOf(name) === owner)
  }

  lend(account: AccountName, borrower: string, amount: number): void {
    if (amount === 0) return
    const lent = this.#lent(account)
    lent.leased += amount
    const lease = leaseOf(lent, borrower)
    lease.amount += amount
    lease.spare += amount
  }

  /** Quota units that other borrowers have on an account and may not need. */
  spareOfOthers(account: AccountName, borrower: string): number {
    let sum = 0
    for (const [name, { spare }] of this.#accounts.get(account)?.leases ?? [])
      if (name !== borrower) sum += spare
    return sum
  }

  /** Pays a charge of `quota` units from the borrower's lease. If the lease is smaller, it is used up. */
  spend(account: AccountName, borrower: string, quota: number): void {
    const lent = this.#lent(account)
    const lease = leaseOf(lent, borrower)
    lease.unreported += quota
    reduce(lent, lease, Math.max(0, lease.amount - quota))
  }

  /** Takes back the borrower's lease, except for `amount` quota units. */
  keep(account: AccountName, borrower: string, amount: number): void {
    const lent = this.#accounts.get(account)
    const lease = lent?.leases.get(borrower)
    if (!lent || !lease) return
    reduce(lent, lease, Math.min(lease.amount, Math.max(0, amount)))
    lease.spare = 0
  }

  /** Moves up to `most` quota units of a lease to another borrower. */
  move(account: AccountName, from: string, to: string, most: number): void {
    const lent = this.#accounts.get(account)
    const lease = lent?.leases.get(from)
    if (!lent || !lease) return
    const amount = Math.min(lease.amount, most)
    lease.amount -= amount
    lease.spare = Math.min(lease.spare, lease.amount)
    if (amount > 0) leaseOf(lent, to).amount += amount
    this.#tidy(account, lent)
  }

  /**
   * Returns the charges (quota units) that were not reported to the borrower yet. From then on they count as
   * reported.
   */
  takeUnreported(account: AccountName, borrower: string): number {
    const lent = this.#accounts.get(account)
    const lease = lent?.leases.get(borrower)
    if (!lent || !lease) return 0
    const { unreported } = lease
    lease.unreported = 0
    this.#tidy(account, lent)
    return unreported
  }

  /**
   * Ends the leases of an account, except for the amounts of the borrowers' open holds. Returns the new epoch
   * of the account (how often its leases were ended).
   */
  recall(account: AccountName, openHolds: ReadonlyMap<string, number>): number {
    const lent = this.#lent(account)
    lent.epoch += 1
    for (const [borrower, lease] of lent.leases)
      reduce(lent, lease, Math.min(lease.amount, openHolds.get(borrower) ?? 0))
    return lent.epoch
  }

  /** Ends all leases of a borrower whose process has ended. */
  drop(borrower: string): void {
    for (const [account, lent] of this.#accounts) {
      const lease = lent.leases.get(borrower)
      if (!lease) continue
      reduce(lent, lease, 0)
      lent.leases.delete(borrower)
      this.#tidy(account, lent)
    }
  }

  #lent(account: AccountName): LentAccount {
    let lent = this.#accounts.get(account)
    if (!lent) this.#accounts.set(account, (lent = { epoch: 0, leased: 0, leases: new Map() }))
    return lent
  }

  // An account whose leases have been ended before (epoch above zero) is kept, because a borrower may know
  // its epoch.
  #tidy(account: AccountName, lent: LentAccount): void {
    for (const [borrower, { amount, unreported }] of lent.leases)
      if (amount === 0 && unreported === 0) lent.leases.delete(borrower)
    if (lent.leases.size === 0 && lent.epoch === 0) this.#accounts.delete(account)
  }
}

function leaseOf(lent: LentAccount, borrower: string): Lease {
  let lease = lent.leases.get(borrower)
  if (!lease) lent.leases.set(borrower, (lease = { amount: 0, spare: 0, unreported: 0 }))
  return lease
}

function reduce(lent: LentAccount, lease: Lease, to: number): void {
  lent.leased -= lease.amount - to
  lease.amount = to
  lease.spare = Math.min(lease.spare, to)
}
