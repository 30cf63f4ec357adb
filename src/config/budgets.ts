import type { z } from 'zod'
import { BUDGET_PERIODS, type Budget, type BudgetPeriod } from '../domain/budget.ts'
import { integer, oneOf } from './fields.ts'

/** Keys of a budget, in a user, a token or a group; `docs/ledger.md: Budgets`. */
export function budgetFields(maxQuota = Number.MAX_SAFE_INTEGER) {
  return {
    budget: integer(0, maxQuota).optional(),
    budget_period: oneOf(BUDGET_PERIODS).optional(),
  }
}

interface GivenBudget {
  readonly budget?: number | undefined
  readonly budget_period?: BudgetPeriod | undefined
}

/** Refuses a budget without a period, and a period without a budget. */
export function requireWholeBudget(
  { budget, budget_period: period }: GivenBudget,
  ctx: z.RefinementCtx,
): void {
  if (budget !== undefined && budget > 0 && period === undefined) {
    const message = `expected one of ${BUDGET_PERIODS.join(', ')}, found nothing`
    ctx.addIssue({ code: 'custom', path: ['budget_period'], message })
  }
  if (budget === undefined && period !== undefined) {
    const message = 'expected a budget for budget_period, found nothing'
    ctx.addIssue({ code: 'custom', path: ['budget'], message })
  }
}

/** The declared budget: null for a budget of 0, which means none; undefined if nothing is declared. */
export function declaredBudget({ budget, budget_period: period }: GivenBudget): Budget | null | undefined {
  if (budget === undefined) return undefined
  return budget > 0 && period !== undefined ? { amount: budget, period } : null
}
