import { type BudgetPeriod, budgetPeriodAt } from '../../src/domain/budget.ts'
import type { UsageLimitsObject } from '../../src/management/usage-limits.ts'

/** A budget with its use in the current period. */
export type BudgetState = Pick<
  UsageLimitsObject,
  'budget' | 'budget_period' | 'budget_used' | 'budget_held' | 'budget_resets_at'
>

const PERCENT = 100
/** The fraction of a budget's period that must have passed before spending is extrapolated. */
const FIRST_PART = 0.05

/** How much of a budget is used, in whole per cent up to 100. */
export function usedPercent({ budget, budget_used }: Pick<BudgetState, 'budget' | 'budget_used'>): number {
  return budget === 0 ? 0 : Math.min(PERCENT, Math.floor((budget_used * PERCENT) / budget))
}

/**
 * The share of a budget that is held for calls under way, in whole per cent; used and held together are at
 * most 100.
 */
export function heldPercent(state: Pick<BudgetState, 'budget' | 'budget_used' | 'budget_held'>): number {
  const { budget, budget_used: used, budget_held: held } = state
  return usedPercent({ budget, budget_used: used + held }) - usedPercent(state)
}

/**
 * The time, in Unix seconds, at which the budget will be used up if spending continues as it has since the
 * start of the period. Undefined if the budget lasts, is already used up, or the period has only begun.
 */
export function budgetExhaustionTime(
  { budget, budget_period, budget_used, budget_resets_at: resetsAt }: Omit<BudgetState, 'budget_held'>,
  nowSeconds: number,
): number | undefined {
  if (budget === 0 || budget_used <= 0 || budget_used >= budget) return undefined
  const startsAt = budgetPeriodAt(budget_period as BudgetPeriod, resetsAt * 1000 - 1).startMs / 1000
  const elapsed = nowSeconds - startsAt
  if (elapsed < (resetsAt - startsAt) * FIRST_PART) return undefined
  const endsAt = startsAt + (elapsed * budget) / budget_used
  return endsAt < resetsAt ? endsAt : undefined
}
