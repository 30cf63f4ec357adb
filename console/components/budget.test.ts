import { describe, expect, test } from 'vitest'
import { budgetExhaustionTime, heldPercent, usedPercent } from './budget.ts'

const DAY_S = 86_400
const at = (date: string): number => Date.parse(date) / 1000
/** $20 a month, in November 2026. */
const NOVEMBER = { budget: 20, budget_period: 'month', budget_resets_at: at('2026-12-01T00:00:00Z') }

describe('the meter of a budget', () => {
  test.each([
    [0, 0],
    [13, 65],
    [20, 100],
    [26, 100],
  ])('a meter with %d of 20 used shows %d per cent', (used, percent) => {
    expect(usedPercent({ ...NOVEMBER, budget_used: used })).toBe(percent)
  })

  test.each([
    [0, 5, 25],
    [13, 5, 25],
    [18, 5, 10],
    [20, 5, 0],
  ])('with %d of 20 used, %d held are %d per cent of the bar', (used, held, percent) => {
    expect(heldPercent({ ...NOVEMBER, budget_used: used, budget_held: held })).toBe(percent)
  })

  test('the forecast of a budget names when it will be used up, once a twentieth of its period is over', () => {
    // Half of it in 10 days: all of it in 20.
    expect(budgetExhaustionTime({ ...NOVEMBER, budget_used: 10 }, at('2026-11-11T00:00:00Z'))).toBe(
      at('2026-11-21T00:00:00Z'),
    )
    // A twentieth of 30 days is a day and a half.
    const early = at('2026-11-02T12:00:00Z')
    expect(budgetExhaustionTime({ ...NOVEMBER, budget_used: 10 }, early - 1)).toBeUndefined()
    expect(budgetExhaustionTime({ ...NOVEMBER, budget_used: 10 }, early)).toBe(at('2026-11-04T00:00:00Z'))
  })

  test('a budget has no forecast if it lasts until its reset, or is used up already', () => {
    const now = at('2026-11-16T00:00:00Z')
    expect(budgetExhaustionTime({ ...NOVEMBER, budget_used: 10 }, now)).toBeUndefined()
    expect(budgetExhaustionTime({ ...NOVEMBER, budget_used: 10.5 }, now)).toBeLessThan(
      NOVEMBER.budget_resets_at,
    )
    expect(budgetExhaustionTime({ ...NOVEMBER, budget_used: 20 }, now)).toBeUndefined()
    expect(budgetExhaustionTime({ ...NOVEMBER, budget_used: 0 }, now)).toBeUndefined()
  })

  test('the forecast of a weekly budget counts its period from a week before the reset', () => {
    const monday = at('2026-11-23T00:00:00Z')
    const week = { budget: 70, budget_period: 'week', budget_used: 20, budget_resets_at: monday + 7 * DAY_S }
    expect(budgetExhaustionTime(week, monday + DAY_S)).toBe(monday + 3.5 * DAY_S)
  })
})
