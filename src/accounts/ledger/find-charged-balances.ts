import {
  type BudgetName,
  budgetInPeriodAt,
  type PeriodBudget,
  budgetOfStoredHold,
} from '../../domain/budget.ts'
import type { Group } from '../../domain/records/group.ts'
import type { Token } from '../../domain/records/token.ts'
import type { User } from '../../domain/records/user.ts'
import { GatewayError } from '../../errors.ts'
import type { AccountSource } from './account-source.ts'
import { NO_BUDGETS, type ChargedBalances } from './charged-balances.ts'

/** The properties of a call that decide which budgets it is charged to. */
export interface ChargedCall {
  readonly token: Pick<Token, 'id' | 'budget'>
  readonly user: Pick<User, 'id' | 'budget'>
  /** Groups whose channels may answer the call, without duplicates. */
  readonly groups: readonly Pick<Group, 'name' | 'budget'>[]
  /** Start of the call in Unix milliseconds, which decides the periods of its budgets. */
  readonly startedMs: number
}

const NO_TERMS: readonly PeriodBudget[] = []

/**
 * Finds the balances that a call of this token is charged to; synchronously if they are in memory. Admit the
 * call in the turn of the event loop in which this returns or resolves, because the accounts may be evicted
 * afterwards.
 */
export function findChargedBalances(
  accounts: AccountSource,
  call: ChargedCall,
): ChargedBalances | Promise<ChargedBalances> {
  const periodBudgets = budgetsOfCall(call)
  const account = accounts.get(call.token.id)
  const budgets = account && accounts.budgets(account, periodBudgets)
  return account && budgets ? { account, budgets } : loadPayer(accounts, periodBudgets, call.token)
}

async function loadPayer(
  accounts: AccountSource,
  periodBudgets: readonly PeriodBudget[],
  { id }: Pick<Token, 'id'>,
): Promise<ChargedBalances> {
  for (;;) {
    const account = accounts.get(id) ?? (await accounts.load(id))
    if (!account) throw new GatewayError('invalid_api_key', 'this API key is unknown')
    const budgets = accounts.budgets(account, periodBudgets)
    if (!budgets) {
      await accounts.loadBudgets(periodBudgets)
      continue
    }
    return { account, budgets }
  }
}

/** The budgets that a call is charged to, each in the period in which the call began. */
function budgetsOfCall({ token, user, groups, startedMs }: ChargedCall): readonly PeriodBudget[] {
  if (!token.budget && !user.budget && groups.every(({ budget }) => !budget)) return NO_TERMS
  const budgets = groups.flatMap(({ name, budget }) =>
    budget ? [budgetInPeriodAt(budget, `g:${name}`, startedMs)] : [],
  )
  if (user.budget) budgets.push(budgetInPeriodAt(user.budget, `u:${user.id}`, startedMs))
  if (token.budget) budgets.push(budgetInPeriodAt(token.budget, `t:${token.id}`, startedMs))
  return budgets
}

/**
 * Loads the account and the budgets of a hold that an earlier process left open; undefined if the token is
 * unknown.
 */
export async function findBalancesOfParkedHold(
  accounts: AccountSource,
  tokenId: number,
  budgets: readonly BudgetName[],
): Promise<ChargedBalances | undefined> {
  const periodBudgets = budgets.map(budgetOfStoredHold)
  await accounts.loadBudgets(periodBudgets)
  const account = await accounts.load(tokenId)
  return account && { account, budgets: accounts.budgets(account, periodBudgets) ?? NO_BUDGETS }
}
