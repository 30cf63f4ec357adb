import type { TermsObject } from '../management/call-terms.ts'
import type { QuotaDisplay } from '../management/gateway-status.ts'
import { quotaText } from './quota-text.ts'

type ShownBudget = Pick<TermsObject, 'budget' | 'budget_period' | 'budget_used'>

/** Formats a budget and its use in the current period: `30 of 5000000 ($10.00) per month`; `none`. */
export function budgetText(
  { budget, budget_period, budget_used }: ShownBudget,
  display: QuotaDisplay,
): string {
  return budget === 0 ? 'none' : `${budget_used} of ${quotaText(budget, display)} per ${budget_period}`
}

/** Whether calls are refused until the period ends. */
export function isBudgetUsedUp({ budget, budget_used }: ShownBudget): boolean {
  return budget > 0 && budget_used >= budget
}
