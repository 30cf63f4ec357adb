import { BUDGET_PERIODS, type BudgetPeriod } from '../../src/domain/budget.ts'
import { describeMismatch } from '../../src/domain/records/field-types.ts'
import { RATE_LIMIT, type RateLimitName } from '../../src/domain/records/usage-limits.ts'
import type { UsageLimitsObject } from '../../src/management/usage-limits.ts'
import { exactAmount, type MoneyDisplay, parseMoney, withoutGroups } from './money.ts'

export const RATE_LIMIT_NAMES = Object.keys(RATE_LIMIT) as readonly RateLimitName[]

/** The choices of a budget's period; empty for no budget. */
export const PERIOD_CHOICES = ['', ...BUDGET_PERIODS] as const

/** The typed budget and rate limit of a key or a user; an empty text means none. */
export type LimitFormValues = Readonly<Record<RateLimitName, string>> & {
  readonly budget: string
  readonly budget_period: BudgetPeriod | ''
}

/** Limits in the gateway's format. */
export type LimitFields = Partial<Record<RateLimitName | 'budget', number>> & {
  readonly budget_period?: BudgetPeriod
}

/** The form values of a key or a user without limits. */
export const EMPTY_LIMIT_VALUES: LimitFormValues = {
  budget: '',
  budget_period: '',
  rate_limit_requests: '',
  rate_limit_tokens: '',
  rate_limit_parallel: '',
  rate_limit_window: '60',
}

/** The form values of the limits of a key or a user. */
export function limitFormValues(limited: UsageLimitsObject, display: MoneyDisplay): LimitFormValues {
  const rates = RATE_LIMIT_NAMES.map((name) => [name, limited[name] === 0 ? '' : String(limited[name])])
  return {
    budget: limited.budget === 0 ? '' : exactAmount(limited.budget, display),
    budget_period: limited.budget_period as BudgetPeriod | '',
    ...(Object.fromEntries(rates) as Record<RateLimitName, string>),
  }
}

/** The minimum and maximum of a rate limit, if the typed text is outside them; otherwise undefined. */
export function violatedBounds(name: RateLimitName, typed: string) {
  const { type } = RATE_LIMIT[name]
  const isNone = typed.trim() === '' && type.bounds.minimum === 0
  return isNone || describeMismatch(type, numberIn(typed)) === undefined ? undefined : type.bounds
}

/** The typed limits that differ from the limits `before`, in the gateway's format. */
export function changedLimitFields(
  typed: LimitFormValues,
  before: LimitFormValues,
  display: MoneyDisplay,
): LimitFields {
  const rates = RATE_LIMIT_NAMES.filter((name) => typed[name] !== before[name])
  const { budget_period } = typed
  const budget = budget_period === '' ? 0 : (parseMoney(typed.budget, display) ?? 0)
  const isChanged = typed.budget !== before.budget || budget_period !== before.budget_period
  return {
    ...Object.fromEntries(rates.map((name) => [name, numberIn(typed[name])])),
    ...(isChanged && (budget > 0 || before.budget !== '') && { budget }),
    ...(isChanged && budget > 0 && budget_period !== '' && { budget_period }),
  }
}

function numberIn(typed: string): number {
  return Number(withoutGroups(typed))
}
