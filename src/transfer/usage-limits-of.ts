import type { RowReader } from '@sluice/import/row-reader'
import { BUDGET_PERIODS } from '../domain/budget.ts'
import type { UsageLimitChanges } from '../domain/usage-limits.ts'
import type { QuotaConverter } from './amounts.ts'

/** Reads the budget and the rate limit of a row; gateways without them have no such columns. */
export function usageLimitsOf(
  cells: RowReader,
  units: QuotaConverter,
): UsageLimitChanges & { readonly budgetUsed?: number } {
  const rate = (name: string): number => Math.max(0, cells.integer(`rate_limit_${name}`))
  const rateLimit = { requests: rate('requests'), tokens: rate('tokens'), parallel: rate('parallel') }
  const period = BUDGET_PERIODS.find((one) => one === cells.text('budget_period'))
  const amount = units.convertBudget('budget', cells.integer('budget'))
  return {
    ...(period && amount > 0 && { budget: { amount, period } }),
    ...(period && { budgetUsed: units.convert('budget_used', cells.integer('budget_used')) }),
    ...(Object.values(rateLimit).some((most) => most > 0) && { rateLimit }),
  }
}
