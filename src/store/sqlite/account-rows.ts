import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { type BudgetName, ownerOf } from '../../domain/budget.ts'
import type { AccountName, BudgetRequest, LoanRequest } from '../bank.ts'
import type { TokenRow } from '../../domain/records/token.ts'
import type { UserRow } from '../../domain/records/user.ts'

/** Rows of a token and its user. */
export interface AccountPair {
  readonly token: TokenRow
  readonly user: UserRow
}

/** Committed rows of the accounts that leases are lent on; for use between transactions. */
export class AccountRows {
  readonly #tokenById: StatementSync
  readonly #tokenByHash: StatementSync
  readonly #userById: StatementSync
  readonly #tokenRemain: StatementSync
  readonly #userRemain: StatementSync
  readonly #budget: StatementSync
  readonly #setBudget: StatementSync
  readonly #held: StatementSync

  constructor(db: DatabaseSync) {
    this.#tokenById = db.prepare('SELECT * FROM tokens WHERE id = ?')
    this.#tokenByHash = db.prepare('SELECT * FROM tokens WHERE key_hash = ?')
    this.#userById = db.prepare('SELECT * FROM users WHERE id = ?')
    this.#tokenRemain = db.prepare('SELECT remain_quota AS remain FROM tokens WHERE id = ?')
    this.#userRemain = db.prepare('SELECT quota AS remain FROM users WHERE id = ?')
    this.#budget = db.prepare('SELECT amount, used FROM budget_periods WHERE account = ?')
    // A cast keeps it an integer, because the driver binds every number as a double.
    this.#setBudget = db.prepare(
      `INSERT INTO budget_periods (account, owner, amount, used) VALUES (?, ?, CAST(? AS INTEGER), 0)
       ON CONFLICT (account) DO UPDATE SET amount = excluded.amount`,
    )
    this.#held = db.prepare(
      'SELECT owner, sum(amount) AS held FROM holds WHERE instr(budgets, json_quote(?)) > 0 GROUP BY owner',
    )
  }

  /** The token of a request, with its user; undefined for an unknown one. */
  pair(of: LoanRequest['token']): AccountPair | undefined {
    const row = typeof of === 'number' ? this.#tokenById.get(of) : this.#tokenByHash.get(of.keyHash)
    const token = row as TokenRow | undefined
    if (!token) return undefined
    return { token, user: this.#userById.get(token.user_id) as unknown as UserRow }
  }

  /** The balance of an account, lent or not; undefined for an unknown one. */
  remain(account: AccountName): number | undefined {
    if (account.startsWith('b:')) {
      const { amount, used } = this.budget(account as BudgetName)
      return amount - used
    }
    const rows = account.startsWith('u:') ? this.#userRemain : this.#tokenRemain
    return rows.get(Number(account.slice(2)))?.['remain'] as number | undefined
  }

  /** A budget's account; zeros for one without a row. */
  budget(account: BudgetName): { readonly amount: number; readonly used: number } {
    const row = this.#budget.get(account)
    return {
      amount: (row?.['amount'] as number | undefined) ?? 0,
      used: (row?.['used'] as number | undefined) ?? 0,
    }
  }

  /** Sums of the open holds on a budget, by their owners. */
  heldOn(account: AccountName): ReadonlyMap<string, number> {
    const rows = this.#held.all(account) as { owner: string; held: number }[]
    return new Map(rows.map(({ owner, held }) => [owner, held]))
  }

  setBudget(account: BudgetName, amount: number): void {
    this.#setBudget.run(account, ownerOf(account), amount)
  }
}

/** The amount of a budget: by the rows of token and user, else as the request states it; 0 = unknown. */
export function budgetAmount({ account, amount }: BudgetRequest, { token, user }: AccountPair): number {
  const period = account.split(':')[1]
  const owner = ownerOf(account)
  if (owner === `t:${token.id}` && token.budget_period === period) return token.budget
  if (owner === `u:${user.id}` && user.budget_period === period) return user.budget
  return amount
}
