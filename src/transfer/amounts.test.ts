import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RowReader } from '@sluice/import/row-reader'
import { QuotaConverter } from './amounts.ts'
import { usageLimitsOf } from './usage-limits-of.ts'

describe('quota of another gateway', () => {
  test('imported quota is unchanged if a quota unit of the source has the same value as in the gateway', () => {
    for (const unitsThere of [undefined, '500000', '500000.0', '5e+05', '5E5']) {
      expect(new QuotaConverter(unitsThere, 500_000).convert('quota', 2 ** 52 + 1)).toBe(2 ** 52 + 1)
    }
  })

  test('imported quota keeps its value in money, rounded half away from zero to a whole unit of the gateway', () => {
    const units = new QuotaConverter('1000', 500)
    expect([10, 1, -1, 3, 0].map((amount) => units.convert('quota', amount))).toEqual([5, 1, -1, 2, 0])
  })

  test('an imported budget below half a quota unit is one unit, and not without a limit', () => {
    // 100 units per dollar here: 4,000 micro-dollars are 0.4 units.
    const units = new QuotaConverter('1000000', 100)
    const limitsOf = (budget: number) =>
      usageLimitsOf(new RowReader({ budget, budget_period: 'month', budget_used: 4_000 }), units)
    expect([1, 4_000, 26_000].map(limitsOf)).toEqual(
      [1, 1, 3].map((amount) => ({ budget: { amount, period: 'month' }, budgetUsed: 0 })),
    )
    expect(limitsOf(0)).toEqual({ budgetUsed: 0 })
  })

  test("imported quota that is converted back equals the original amount if the gateway's quota units are smaller", () => {
    const value = fc.integer({ min: 1, max: 500_000 })
    fc.assert(
      fc.property(
        value,
        fc.integer({ min: 1, max: 18 }),
        fc.nat({ max: 2 ** 31 - 1 }),
        (unitsThere, times, amount) => {
          const unitsHere = unitsThere * times
          const here = new QuotaConverter(String(unitsThere), unitsHere).convert('quota', amount)
          expect(here).toBe(amount * times)
          expect(new QuotaConverter(String(unitsHere), unitsThere).convert('quota', here)).toBe(amount)
        },
      ),
    )
  })

  test.each(['0', '-1', 'many', ''])(
    "an import is refused if the source's QuotaPerUnit is %j",
    (unitsThere) => {
      expect(() => new QuotaConverter(unitsThere, 500_000)).toThrow('QuotaPerUnit: expected a number above 0')
    },
  )

  test('imported quota that exceeds the safe integers is refused', () => {
    expect(() => new QuotaConverter('1', 500_000).convert('quota', 2 ** 52)).toThrow(
      'quota: expected an amount',
    )
  })
})
