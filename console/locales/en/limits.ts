import type { BudgetPeriod } from '../../../src/domain/budget.ts'
import type { SpendingLimit } from '../../../src/domain/remaining-spend.ts'
import type { RateLimitName } from '../../../src/domain/records/usage-limits.ts'

/** Texts in English: budgets and rate limits. */
export const limits = {
  title: 'Budgets',
  budget: 'Budget',
  budgetHint: 'The most that may be spent in each period. Empty: no budget.',
  budgetPeriod: 'Budget period',
  budgetPeriodHint: 'When the budget starts again.',
  periods: { '': 'None', day: 'Day', week: 'Week', month: 'Month' } satisfies Record<
    BudgetPeriod | '',
    string
  >,
  rateLimits: {
    rate_limit_requests: 'Requests per window',
    rate_limit_tokens: 'Tokens per window',
    rate_limit_parallel: 'Calls at once',
    rate_limit_window: 'Window',
  } satisfies Record<RateLimitName, string>,
  rateLimitHints: {
    rate_limit_requests: 'Further calls are refused until the window has room.',
    rate_limit_tokens: 'Of prompts and answers together.',
    rate_limit_parallel: 'Calls under way at the same time.',
    rate_limit_window: 'The time in which requests and tokens count.',
  } satisfies Record<RateLimitName, string>,
  windows: { 60: '1 minute', 300: '5 minutes', 3600: '1 hour', 86_400: '1 day' },
  seconds: (count: string) => `${count} seconds`,
  noLimit: 'No limit',
  notWithin: (min: string, max: string) => `Enter a whole number from ${min} to ${max}.`,
  /** The label of the meter that shows a budget. */
  budgetOf: (name: string) => `Budget of ${name}`,
  meter: (used: string, budget: string, day: string) => `${used} of ${budget}, resets ${day}`,
  /** The amount that is held for calls under way, in addition to the amount already spent. */
  held: (amount: string) => `${amount} held`,
  endsOn: (day: string) => `used up on ${day}`,
  endsAt: (time: string) => `used up at ${time}`,
  usedUp: 'used up',
  by: {
    key: () => 'by the spending limit of the key',
    user: () => 'by the quota of the account',
    key_budget: () => 'by the budget of the key',
    user_budget: () => 'by the budget of the account',
    group_budget: (group) => `by the budget of the group ${group}`,
  } satisfies Record<SpendingLimit, (group: string) => string>,
  stopped: 'Budget used up',
  raise: 'Raise budget',
  amountHint: 'Added to the budget of each period.',
  raised: (name: string, amount: string) => `Budget of “${name}” is ${amount} now.`,
}
