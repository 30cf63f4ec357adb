import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BUDGET_PERIODS, type Budget } from './budget.ts'
import type { CallRateLimit } from './call-terms.ts'
import { afterOperatorChange, hasOperatorTerms, loosened, NO_OPERATOR_TERMS } from './operator-terms.ts'

const OFF: CallRateLimit = { requests: 0, tokens: 0, parallel: 0, windowMs: 60_000 }
const DAILY: Budget = { amount: 100, period: 'day' }
const GIVEN = { budget: DAILY, rateLimit: { ...OFF, requests: 10, parallel: 3 } }

const field = (budget: Budget | undefined, rateLimit: Partial<CallRateLimit>) =>
  loosened({ budget, rateLimit: { ...GIVEN.rateLimit, ...rateLimit } }, GIVEN)?.field

describe('terms that are looser than the operator’s', () => {
  test.each<[string, Budget | undefined, Partial<CallRateLimit>, string]>([
    ['a larger budget', { amount: 101, period: 'day' }, {}, 'budget'],
    ['no budget', undefined, {}, 'budget'],
    ['the budget of a longer period, which begins anew', { amount: 1, period: 'month' }, {}, 'budget_period'],
    ['more requests', DAILY, { requests: 11 }, 'rate_limit_requests'],
    ['any number of requests', DAILY, { requests: 0 }, 'rate_limit_requests'],
    ['more calls at once', DAILY, { parallel: 4 }, 'rate_limit_parallel'],
    ['any number of calls at once', DAILY, { parallel: 0 }, 'rate_limit_parallel'],
    ['a shorter window', DAILY, { windowMs: 59_000 }, 'rate_limit_window'],
    ['a longer window, which counts anew', DAILY, { requests: 1, windowMs: 61_000 }, 'rate_limit_window'],
  ])('terms are looser than the operator’s with %s', (_, budget, rateLimit, expected) => {
    expect(field(budget, rateLimit)).toBe(expected)
  })

  test('terms that are less, equal, or not restricted by the operator are accepted', () => {
    expect(field(DAILY, {})).toBeUndefined()
    expect(field({ amount: 1, period: 'day' }, { requests: 1, parallel: 1, tokens: 1 })).toBeUndefined()
    const parallelAlone = { rateLimit: { ...OFF, parallel: 3 } }
    expect(
      loosened({ budget: undefined, rateLimit: { ...OFF, parallel: 3, windowMs: 5 } }, parallelAlone),
    ).toBeUndefined()
  })
})

const budget = fc.record({
  amount: fc.integer({ min: 1, max: 9 }),
  period: fc.constantFrom(...BUDGET_PERIODS),
})
const part = fc.record(
  {
    requests: fc.integer({ min: 0, max: 3 }),
    tokens: fc.integer({ min: 0, max: 3 }),
    parallel: fc.integer({ min: 0, max: 3 }),
    windowMs: fc.constantFrom(1_000, 60_000),
  },
  { requiredKeys: [] },
)
const change = fc.record({ budget: fc.option(budget), rateLimit: part }, { requiredKeys: [] })

test("an operator's change replaces what the holder has, whoever changed it before", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), change)), (changes) => {
      let terms: { budget: Budget | undefined; rateLimit: CallRateLimit } = {
        budget: undefined,
        rateLimit: OFF,
      }
      let given = NO_OPERATOR_TERMS
      for (const [isByOperator, { budget, rateLimit }] of changes) {
        const next = {
          budget: budget === undefined ? terms.budget : (budget ?? undefined),
          rateLimit: { ...terms.rateLimit, ...rateLimit },
        }
        if (isByOperator) given = afterOperatorChange(given, { budget, rateLimit }, terms.rateLimit.windowMs)
        else if (loosened(next, given)) continue
        terms = next
        expect(loosened(terms, given)).toBeUndefined()
      }
    }),
  )
})

test('terms that an operator removes no longer restrict the holder', () => {
  const given = afterOperatorChange(NO_OPERATOR_TERMS, { budget: DAILY, rateLimit: { requests: 1 } }, 60_000)
  expect(hasOperatorTerms({ operator_terms: given })).toBe(true)
  const after = afterOperatorChange(given, { budget: null, rateLimit: { requests: 0 } }, 60_000)
  expect(hasOperatorTerms({ operator_terms: after })).toBe(false)
})
