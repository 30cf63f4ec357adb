import { type BudgetName, chargedBudgets, type PeriodBudget } from '../../domain/budget.ts'
import type { Account, Balance } from './balance.ts'

/** A budget in one period, with the balance that remains of it in that period. */
export interface ChargedBudget {
  readonly periodBudget: PeriodBudget
  readonly balance: Balance
}

/** No budgets; a constant, so that calls without budgets cost nothing extra. */
export const NO_BUDGETS: readonly ChargedBudget[] = []

/** All balances that one call is charged to. */
export interface ChargedBalances {
  readonly account: Account
  readonly budgets: readonly ChargedBudget[]
}

/**
 * Quota units available for the hold of a call: the minimum over token, user and budgets, or at most 0 if calls
 * wait for one of these at a bank. An unlimited token is ignored; an unlimited user has what is `holdable`.
 */
export function affordableAmount(account: Account, budgets: readonly ChargedBudget[] = NO_BUDGETS): number {
  const free = affordableAmountInTurn(account, budgets)
  const isAwaited =
    (!account.user.isUnlimited && account.user.isAwaited) ||
    (!account.token.isUnlimited && account.token.isAwaited) ||
    budgets.some(({ balance }) => balance.isAwaited)
  return isAwaited ? Math.min(0, free) : free
}

/**
 * Quota units available for the hold of a call whose turn it is. Unlike `affordableAmount`, it does not
 * reserve quota for the calls that wait at the bank.
 */
export function affordableAmountInTurn(
  account: Account,
  budgets: readonly ChargedBudget[] = NO_BUDGETS,
): number {
  return leastFree(account, budgets, ({ balance, periodBudget }) => balance.freeAtAmount(periodBudget.amount))
}

/**
 * Quota units by which an open hold can grow. Unlike `affordableAmountInTurn`, it includes quota that was lent for another
 * amount of a budget, because the amount may have changed since the hold was admitted.
 */
export function affordableHoldGrowth(account: Account, budgets: readonly ChargedBudget[]): number {
  return leastFree(account, budgets, ({ balance }) => balance.free)
}

function leastFree(
  account: Account,
  budgets: readonly ChargedBudget[],
  freeOf: (budget: ChargedBudget) => number,
): number {
  const { token, user } = account
  // The user holds all that its tokens hold.
  let free = user.isUnlimited ? user.holdable : user.free
  if (!token.isUnlimited) free = Math.min(free, token.free)
  for (const one of budgets) free = Math.min(free, freeOf(one))
  return free
}

/**
 * The same balances with 0, unknown, as the amount of each budget: a loan for them leaves the amounts as later calls
 * have stated them.
 */
export function withoutStatedAmounts({ account, budgets }: ChargedBalances): ChargedBalances {
  const unstated = budgets.map((one) => ({ ...one, periodBudget: { ...one.periodBudget, amount: 0 } }))
  return { account, budgets: unstated }
}

/**
 * Whether holds of this amount, one for each open hold of a balance and one more, take less than this share of what is
 * left of the balance, for every balance that is checked.
 */
export function isSmallHold({ account, budgets }: ChargedBalances, amount: number, share: number): boolean {
  const isSmall = ({ openHolds, accountFree, isUnlimited }: Balance): boolean =>
    isUnlimited || amount * (openHolds + 1) < accountFree * share
  return isSmall(account.user) && isSmall(account.token) && budgets.every(({ balance }) => isSmall(balance))
}

/** Reserves quota units on every balance for a new hold. */
export function addHold(payer: ChargedBalances, amount: number): void {
  forEachBalance(payer, (balance) => {
    balance.hold(amount)
    balance.openHolds++
  })
}

/** Counts quota units that are held as spent on every balance, or no longer if negative. */
export function commitHold(payer: ChargedBalances, by: number): void {
  forEachBalance(payer, (balance) => (balance.committed += by))
}

/** Adds quota units to an open hold on every balance, or releases some if negative. */
export function growHold(payer: ChargedBalances, by: number): void {
  forEachBalance(payer, (balance) => balance.hold(by))
}

/** Releases a hold on every balance. `amount`: its quota units. */
export function releaseHold(payer: ChargedBalances, amount: number): void {
  forEachBalance(payer, (balance) => {
    balance.hold(-amount)
    balance.openHolds--
  })
}

/** Subtracts a charge from every balance; a negative one reverts a charge that was never written. */
export function chargeBalances(payer: ChargedBalances, quota: number): void {
  forEachBalance(payer, (balance) => balance.charge(quota))
}

/** Adds to or subtracts from the number of writes that are not durable yet, on every balance. */
export function adjustPendingWrites(payer: ChargedBalances, by: 1 | -1): void {
  forEachBalance(payer, (balance) => (balance.pendingWrites += by))
}

function forEachBalance({ account, budgets }: ChargedBalances, change: (balance: Balance) => void): void {
  change(account.token)
  change(account.user)
  for (const { balance } of budgets) change(balance)
}

/**
 * The balances that a call is charged to once it is known which group answered. Until then its hold is on the
 * budgets of every group that might answer.
 */
export function balancesForGroup({ account, budgets }: ChargedBalances, group: string): ChargedBalances {
  if (budgets.length === 0) return { account, budgets }
  const charged = chargedBudgets(budgetNames(budgets), group)
  return { account, budgets: budgets.filter(({ periodBudget }) => charged.includes(periodBudget.name)) }
}

/** The names of the budgets' accounts, such as `b:…`. */
export function budgetNames(budgets: readonly ChargedBudget[]): readonly BudgetName[] {
  return budgets.map(({ periodBudget }) => periodBudget.name)
}
