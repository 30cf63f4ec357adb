import type { BudgetPeriod } from '../../../src/domain/budget.ts'
import { mismatch } from '../../../src/domain/records/field-types.ts'
import { RATE_LIMIT, type RateLimitName } from '../../../src/domain/records/terms.ts'
import type { NewTokenFields } from '../../../src/management/tokens/token-object.ts'
import type { ApiKey } from '../../api/keys.ts'
import { exactAmount, type MoneyDisplay, parseMoney } from '../../components/money.ts'

/** The fields of the rate limit of a key. */
export const RATE_LIMIT_NAMES = Object.keys(RATE_LIMIT) as readonly RateLimitName[]

/** The typed budget and rate limit of a key; an empty text means none. */
export type TypedLimits = Readonly<Record<RateLimitName, string>> & {
  readonly budget: string
  readonly budget_period: BudgetPeriod
}

/** Limits of a new key. */
export const NO_LIMITS: TypedLimits = {
  budget: '',
  budget_period: 'month',
  rate_limit_requests: '',
  rate_limit_tokens: '',
  rate_limit_parallel: '',
  rate_limit_window: '60',
}

/** The form values of a key's limits. */
export function typedLimits(key: ApiKey, display: MoneyDisplay): TypedLimits {
  const rates = RATE_LIMIT_NAMES.map((name) => [name, key[name] === 0 ? '' : String(key[name])])
  return {
    budget: key.budget === 0 ? '' : exactAmount(key.budget, display),
    budget_period: (key.budget_period || NO_LIMITS.budget_period) as BudgetPeriod,
    ...(Object.fromEntries(rates) as Record<RateLimitName, string>),
  }
}

/** The bounds of a rate limit field where the typed text is not within them. */
export function brokenBounds(name: RateLimitName, typed: string) {
  const { type } = RATE_LIMIT[name]
  const isNone = typed.trim() === '' && type.bounds.minimum === 0
  return isNone || mismatch(type, numberIn(typed)) === undefined ? undefined : type.bounds
}

/** The limits that differ from those `before`, in the gateway's format. */
export function changedLimits(
  typed: TypedLimits,
  before: TypedLimits,
  display: MoneyDisplay,
): Partial<NewTokenFields> {
  const rates = RATE_LIMIT_NAMES.filter((name) => typed[name] !== before[name])
  const budget = parseMoney(typed.budget, display) ?? 0
  const isChanged = typed.budget !== before.budget || typed.budget_period !== before.budget_period
  return {
    ...Object.fromEntries(rates.map((name) => [name, numberIn(typed[name])])),
    ...(isChanged && (budget > 0 || before.budget !== '') && { budget }),
    ...(isChanged && budget > 0 && { budget_period: typed.budget_period }),
  }
}

function numberIn(typed: string): number {
  return Number(typed.trim().replaceAll(',', ''))
}
