import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  BUDGET_PERIODS,
  budgetInPeriodAt,
  formatBudgetList,
  parseBudgetList,
  chargedBudgets,
  budgetOwnerOf,
  budgetPeriodAt,
  budgetOfStoredHold,
} from './budget.ts'

const at = (text: string): number => Date.parse(text)

describe('a period', () => {
  test.each([
    ['day', '2026-11-22T23:59:59.999Z', '2026-11-22', '2026-11-23'],
    ['day', '2026-11-23T00:00:00Z', '2026-11-23', '2026-11-24'],
    ['week', '2026-11-22T23:59:59.999Z', '2026-11-16', '2026-11-23'],
    ['week', '2026-11-23T00:00:00Z', '2026-11-23', '2026-11-30'],
    ['week', '1969-12-31T12:00:00Z', '1969-12-29', '1970-01-05'],
    ['month', '2026-12-31T23:59:59.999Z', '2026-12-01', '2027-01-01'],
    ['month', '2028-02-29T00:00:00Z', '2028-02-01', '2028-03-01'],
  ] as const)('a period of a %s at %s is from %s to %s', (period, now, start, end) => {
    expect(budgetPeriodAt(period, at(now))).toEqual({ startMs: at(start), endMs: at(end) })
  })

  test('a budget period includes its start and ends where the next one starts; a week starts on Monday', () => {
    fc.assert(
      fc.property(fc.constantFrom(...BUDGET_PERIODS), fc.integer({ min: -1e12, max: 1e13 }), (period, ms) => {
        const { startMs, endMs } = budgetPeriodAt(period, ms)
        expect(startMs).toBeLessThanOrEqual(ms)
        expect(endMs).toBeGreaterThan(ms)
        expect(budgetPeriodAt(period, startMs)).toEqual({ startMs, endMs })
        expect(budgetPeriodAt(period, endMs).startMs).toBe(endMs)
        if (period === 'week') expect(new Date(startMs).getUTCDay()).toBe(1)
      }),
    )
  })
})

test("the owner and the period of a budget can be read from the name of its account, whatever characters the group's name has", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...BUDGET_PERIODS),
      fc.string(),
      fc.integer({ min: 0, max: 4e12 }),
      (period, g, ms) => {
        const budget = budgetInPeriodAt({ amount: 5, period }, `g:${g}`, ms)
        expect(budgetOwnerOf(budget.name)).toBe(`g:${g}`)
        expect(budgetOfStoredHold(budget.name)).toEqual({ ...budget, amount: 0 })
        expect(parseBudgetList(formatBudgetList([budget.name]))).toEqual([budget.name])
      },
    ),
  )
})

test('a call is charged to the budgets of its user, its key and the one group that served it', () => {
  const [user, key, vip, other] = (['u:1', 't:2', 'g:vip', 'g:a:b'] as const).map(
    (owner) => budgetInPeriodAt({ amount: 1, period: 'day' }, owner, 0).name,
  )
  if (!user || !key || !vip || !other) throw new Error('no names')
  expect(chargedBudgets([user, key, vip, other], 'a:b')).toEqual([user, key, other])
  expect(chargedBudgets([user, key, vip, other], 'default')).toEqual([user, key])
})
