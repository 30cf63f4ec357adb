import type { BudgetPeriod } from '../../domain/budget.ts'
import type { ManagementParts } from '../parts.ts'
import { OPERATOR } from '../authority.ts'
import { changeToken } from './change-token.ts'
import { findToken } from './find-token.ts'
import type { TokenObject } from './token-object.ts'

interface TokenBudget {
  readonly id: number
  /** Quota units; 0 = none. */
  readonly budget?: number
  readonly budget_period?: BudgetPeriod
}

/** Sets the budget of a token of any user, as an operator. */
export async function budgetToken(parts: ManagementParts, given: TokenBudget): Promise<TokenObject> {
  const { id, user_id: user } = await findToken(parts.store, given)
  const { budget, budget_period } = given
  return changeToken(parts, { user, id, budget, budget_period }, OPERATOR)
}
