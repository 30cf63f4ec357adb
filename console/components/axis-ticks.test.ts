import fc from 'fast-check'
import { expect, test } from 'vitest'
import { axisTicks } from './axis-ticks.ts'

test('the ticks of a chart axis are 1, 2, 2.5 or 5 times a power of ten apart, and reach the largest value', () => {
  expect(axisTicks(5.2)).toEqual([0, 2, 4, 6])
  expect(axisTicks(900)).toEqual([0, 250, 500, 750, 1000])
  // Quota units of 1/500,000 dollar: the axis has $0.50, $1.00 and so on.
  expect(axisTicks(1_000_000, { unit: 500_000 })).toEqual([0, 250_000, 500_000, 750_000, 1_000_000])
  expect(axisTicks(3, { areWhole: true })).toEqual([0, 1, 2, 3])
  expect(axisTicks(9, { areWhole: true })).toEqual([0, 5, 10])
  expect(axisTicks(0)).toEqual([0])
  fc.assert(
    fc.property(
      fc.double({ min: 1e-3, max: 1e12, noNaN: true }),
      fc.constantFrom(1, 500_000, 500_000 / 7.3),
      fc.boolean(),
      (max, unit, areWhole) => {
        const ticks = axisTicks(max, { unit, areWhole })
        const step = (ticks[1] ?? 0) / unit
        const mantissa = step / 10 ** Math.floor(Math.log10(step * (1 + 1e-9)))
        expect([1, 2, 2.5, 5].some((one) => Math.abs(mantissa - one) < 1e-6)).toBe(true)
        if (areWhole) expect(Math.abs(step - Math.round(step))).toBeLessThan(1e-6 * step)
        expect(ticks.at(-1)).toBeGreaterThanOrEqual(max * (1 - 1e-6))
        expect(ticks.length).toBeLessThanOrEqual(7)
      },
    ),
  )
})
