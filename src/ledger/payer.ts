import { type BudgetName, chargedBudgets, type PeriodBudget } from '../domain/budget.ts'
import type { Account, Balance } from './balance.ts'

/** The account of a budget in one period: what is left of it in that period is a balance like any other. */
export interface ChargedBudget {
  readonly terms: PeriodBudget
  readonly balance: Balance
}

/** No budgets; a constant, so that calls without any do not pay for them. */
export const NO_BUDGETS: readonly ChargedBudget[] = []

/** All balances that one call is charged to. */
export interface Payer {
  readonly account: Account
  readonly budgets: readonly ChargedBudget[]
}

/**
 * Quota that a hold may take: the least of token, user and budgets. The token's own is left out where it is
 * unlimited.
 */
export function affordable(account: Account, budgets: readonly ChargedBudget[] = NO_BUDGETS): number {
  let free = account.unlimited ? account.user.free : Math.min(account.token.free, account.user.free)
  for (const { balance } of budgets) free = Math.min(free, balance.free)
  return free
}

/** Adds to what is held of every balance; a negative amount releases. */
export function addHold(payer: Payer, amount: number): void {
  forEachBalance(payer, (balance) => balance.hold(amount))
}

/** Subtracts a charge from every balance; a negative one reverts a charge that was never written. */
export function charge(payer: Payer, quota: number): void {
  forEachBalance(payer, (balance) => balance.charge(quota))
}

/** Counts a write that is not durable yet, or that is no longer pending. */
export function countWrite(payer: Payer, by: 1 | -1): void {
  forEachBalance(payer, (balance) => (balance.pendingWrites += by))
}

function forEachBalance({ account, budgets }: Payer, change: (balance: Balance) => void): void {
  change(account.token)
  change(account.user)
  for (const { balance } of budgets) change(balance)
}

/**
 * All that a call is charged to once the group that answered is known: its hold is on the budgets of every
 * group that might have.
 */
export function payerIn({ account, budgets }: Payer, group: string): Payer {
  if (budgets.length === 0) return { account, budgets }
  const charged = chargedBudgets(namesOf(budgets), group)
  return { account, budgets: budgets.filter(({ terms }) => charged.includes(terms.name)) }
}

/** The names of the accounts. */
export function namesOf(budgets: readonly ChargedBudget[]): readonly BudgetName[] {
  return budgets.map(({ terms }) => terms.name)
}
