import type { AccountName, Loan, LoanRequest } from '../store/bank.ts'
import type { Account } from './balance.ts'
import type { LeasedBalance } from './leased-balance.ts'
import type { ChargedBudget, Payer } from './payer.ts'

/** Number of calls that a loan is to last for. */
const CALLS_PER_LOAN = 64
/** Largest first loan, in quota units, while no hold of the account is known. */
const FIRST_LOAN_MAX = 3_200_000

/** Builds the request for the first loan of a token. */
export function firstLoan(token: LoanRequest['token']): LoanRequest {
  const max = { token: FIRST_LOAN_MAX, user: FIRST_LOAN_MAX }
  return { token, need: { token: 0, user: 0 }, max }
}

/** Builds the request for a loan that affords `amount`, and further calls if possible. */
export function loanFor(
  { account: { token, user, unlimited }, budgets }: Payer,
  amount: number,
): LoanRequest {
  const need = (free: number): number => Math.max(0, Math.ceil(amount - free))
  const max = ({ typicalHold, free }: LeasedBalance): number =>
    Math.max(0, Math.ceil(CALLS_PER_LOAN * Math.max(typicalHold, amount) - free))
  return {
    token: token.id,
    need: { token: unlimited ? 0 : need(token.free), user: need(user.free) },
    max: { token: unlimited ? 0 : max(token as LeasedBalance), user: max(user as LeasedBalance) },
    budgets: budgets.map(({ terms, balance }) => ({
      account: terms.name,
      amount: terms.amount,
      need: need(balance.free),
      max: max(balance as LeasedBalance),
    })),
  }
}

/** Whether all balances cover `amount` once other nodes have returned what they do not need. */
export function isCovered(
  { tokenState, userState, budgetStates }: Loan,
  { unlimited }: Account,
  amount: number,
): boolean {
  const states = unlimited ? [userState, ...budgetStates] : [tokenState, userState, ...budgetStates]
  return states.every(({ remain }) => remain >= amount)
}

/** Free quota on this node and in the bank: of token and user, and of each budget. */
export function freeIn(
  { tokenState, userState, budgetStates }: Loan,
  { token, user, unlimited }: Account,
): { readonly free: number; readonly freeOf: (budget: ChargedBudget) => number } {
  const userFree = userState.free + user.free
  const inBank = new Map(budgetStates.map(({ account, free }) => [account, free]))
  return {
    free: unlimited ? userFree : Math.min(userFree, tokenState.free + token.free),
    freeOf: ({ terms, balance }) => (inBank.get(terms.name) ?? 0) + balance.free,
  }
}

/** Accounts of which other nodes have to return quota. */
export function shortages(loan: Loan, { account, budgets }: Payer, amount: number): readonly AccountName[] {
  const { tokenState, userState } = loan
  const { token, user, unlimited } = account
  const short: AccountName[] = []
  if (!unlimited && tokenState.free + token.free < amount) short.push(tokenState.account)
  if (userState.free + user.free < amount) short.push(userState.account)
  const { freeOf } = freeIn(loan, account)
  for (const budget of budgets) if (freeOf(budget) < amount) short.push(budget.terms.name)
  return short
}
