import type { UsageLimitsObject } from './usage-limits.ts'
import type { QuotaDisplay } from './gateway-status.ts'

/** The smallest amount of money that is printed, in dollars or yuan. */
const SMALLEST = 0.000001

/**
 * Formats quota units with their value in money: `500000 ($1.00)`. Without money if the gateway displays
 * tokens (`TOKENS`).
 */
export function quotaText(
  quota: number,
  { display, quota_per_unit, usd_exchange_rate }: QuotaDisplay,
): string {
  if (display === 'TOKENS') return String(quota)
  const amount = (quota / quota_per_unit) * (display === 'CNY' ? usd_exchange_rate : 1)
  const format = new Intl.NumberFormat('en-US', {
    style: 'currency',
    currency: display,
    currencyDisplay: 'narrowSymbol',
    maximumFractionDigits: 6,
  })
  const isTiny = quota !== 0 && Math.abs(amount) < SMALLEST
  const money = isTiny ? `${quota < 0 ? '-' : ''}<${format.format(SMALLEST)}` : format.format(amount)
  return `${quota} (${money})`
}

/** Formats quota units and names their unit: `500000 quota units ($1.00)`. */
export function quotaUnitsText(quota: number, display: QuotaDisplay): string {
  return quotaText(quota, display).replace(/(?= \(|$)/, ' quota units')
}

type ShownBudget = Pick<UsageLimitsObject, 'budget' | 'budget_period' | 'budget_used'>

/**
 * Formats a budget and its use in the current period: `30 of 5000000 ($10.00) per month`; `none` if there is
 * no budget.
 */
export function budgetText(
  { budget, budget_period, budget_used }: ShownBudget,
  display: QuotaDisplay,
): string {
  return budget === 0 ? 'none' : `${budget_used} of ${quotaText(budget, display)} per ${budget_period}`
}

/** Whether a budget is used up, so that calls are refused until its period ends. */
export function isBudgetUsedUp({ budget, budget_used }: ShownBudget): boolean {
  return budget > 0 && budget_used >= budget
}
