import { describe, expect, test } from 'vitest'
import type { MoneyDisplay } from './money.ts'
import {
  violatedBounds,
  changedLimitFields,
  EMPTY_LIMIT_VALUES,
  type LimitFormValues,
} from './limit-form-values.ts'

const USD: MoneyDisplay = { kind: 'USD', quotaPerUnit: 500_000, usdExchangeRate: '1' }
const TEN_A_WEEK: LimitFormValues = { ...EMPTY_LIMIT_VALUES, budget: '10', budget_period: 'week' }

describe('the typed limits', () => {
  test.each<[string, Partial<LimitFormValues>, LimitFormValues, object]>([
    ['nothing that is as before', {}, TEN_A_WEEK, {}],
    [
      'a budget with its period',
      { budget: '2.5', budget_period: 'month' },
      EMPTY_LIMIT_VALUES,
      { budget: 1_250_000, budget_period: 'month' },
    ],
    ['no budget, where its period is none', { budget_period: '' }, TEN_A_WEEK, { budget: 0 }],
    ['no budget without a period', { budget: '2.5' }, EMPTY_LIMIT_VALUES, {}],
    [
      'another period with the amount',
      { budget_period: 'day' },
      TEN_A_WEEK,
      { budget: 5_000_000, budget_period: 'day' },
    ],
    ['no budget', { budget: ' ' }, TEN_A_WEEK, { budget: 0 }],
    ['no period without a budget', { budget_period: 'day' }, EMPTY_LIMIT_VALUES, {}],
    [
      'rate limits, empty for none',
      { rate_limit_requests: '1,000', rate_limit_parallel: '' },
      { ...EMPTY_LIMIT_VALUES, rate_limit_parallel: '3' },
      { rate_limit_requests: 1000, rate_limit_parallel: 0 },
    ],
  ])('the typed limits are sent as %s', (_, typed, before, sent) => {
    expect(changedLimitFields({ ...before, ...typed }, before, USD)).toEqual(sent)
  })

  test.each([
    ['rate_limit_requests', '', true],
    ['rate_limit_requests', '0', true],
    ['rate_limit_requests', '1000000000000', true],
    ['rate_limit_requests', '1000000000001', false],
    ['rate_limit_tokens', '1.5', false],
    ['rate_limit_tokens', '1,5', false],
    ['rate_limit_parallel', 'many', false],
    ['rate_limit_window', '1', true],
    ['rate_limit_window', '', false],
    ['rate_limit_window', '0', false],
  ] as const)('the typed limits have the bounds of the record: %s, %j', (name, typed, isWithin) => {
    expect(violatedBounds(name, typed) === undefined).toBe(isWithin)
  })
})
