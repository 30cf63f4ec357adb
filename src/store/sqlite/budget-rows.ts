import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { type BudgetName, budgetOwnerOf } from '../../domain/budget.ts'
import type { BudgetOpening } from '../ledger-writes.ts'

/**
 * Accounts of budgets in a SQLite file, by the rules of `docs/ledger.md: Accounts of budgets`. Charges of the
 * open transaction are added up in memory; `write` writes each row once.
 */
export class BudgetRows {
  readonly #open: StatementSync
  readonly #find: StatementSync
  readonly #charge: StatementSync
  readonly #charges = new Map<BudgetName, number>()

  constructor(db: DatabaseSync) {
    // The driver binds every number as a double, so amounts are cast to integers.
    this.#open = db.prepare(
      `INSERT INTO budget_periods (account, owner, amount, used) VALUES (?, ?, CAST(? AS INTEGER), 0)
       ON CONFLICT (account) DO UPDATE SET amount = excluded.amount
         WHERE excluded.amount > 0 AND excluded.amount <> amount`,
    )
    this.#find = db.prepare('SELECT amount, used FROM budget_periods WHERE account = ?')
    this.#charge = db.prepare(
      `INSERT INTO budget_periods (account, owner, amount, used) VALUES (?, ?, 0, CAST(? AS INTEGER))
       ON CONFLICT (account) DO UPDATE SET used = used + excluded.used`,
    )
  }

  /**
   * Opens an account or changes its amount. Returns how many quota units of it are used. Call `write` first,
   * so that the charges of the transaction are included.
   */
  open({ name, amount }: BudgetOpening): { readonly used: number } {
    this.#open.run(name, budgetOwnerOf(name), amount)
    return this.find(name)
  }

  /** Amount and use of an account in quota units; both are 0 if the account is not open. */
  find(name: BudgetName): { readonly amount: number; readonly used: number } {
    const row = this.#find.get(name) as { amount: number; used: number } | undefined
    return row ?? { amount: 0, used: 0 }
  }

  charge(names: readonly BudgetName[], quota: number): void {
    for (const name of names) this.#charges.set(name, (this.#charges.get(name) ?? 0) + quota)
  }

  /** Writes the charges that were added up in memory. */
  write(): void {
    for (const [name, quota] of this.#charges) this.#charge.run(name, budgetOwnerOf(name), quota)
    this.#charges.clear()
  }

  /** Discards the charges that were added up in memory, because their transaction was rolled back. */
  discard(): void {
    this.#charges.clear()
  }
}
