import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Usage, UsagePoint } from '../../api/usage.ts'
import { changeOf, NO_POINT, seriesSums, shownSeries, slotSums, sumOf } from './sums.ts'

const point = fc.record(
  Object.fromEntries(Object.keys(NO_POINT).map((name) => [name, fc.nat(1_000_000)])) as unknown as Record<
    keyof UsagePoint,
    fc.Arbitrary<number>
  >,
)

const usages: fc.Arbitrary<Usage> = fc.integer({ min: 1, max: 4 }).chain((slots) => {
  const points = fc.array(point, { minLength: slots, maxLength: slots })
  return fc
    .record({
      series: fc.array(fc.record({ key: fc.string(), label: fc.string(), points }), { maxLength: 9 }),
      other: fc.option(fc.record({ points })),
    })
    .map(({ series, other }) => ({
      step: 'day' as const,
      tz: 'UTC',
      slots: Array.from({ length: slots }, (_, slot) => slot * 86_400),
      series,
      other,
      totals: NO_POINT,
      previous: NO_POINT,
      latency: [],
      exact: true,
    }))
})

test('38: the chart, the breakdown and the intervals have the same sum, and at most six series and the others', () => {
  fc.assert(
    fc.property(usages, (usage) => {
      const shown = shownSeries(usage, 'Other')
      expect(shown.length).toBeLessThanOrEqual(7)
      const whole = sumOf(slotSums(usage))
      expect(sumOf(shown.flatMap(({ points }) => points))).toEqual(whole)
      expect(sumOf(seriesSums(usage, 'Other').map(({ sum }) => sum))).toEqual(whole)
    }),
  )
})

test('a change needs a previous value to compare with', () => {
  expect(changeOf(3, 2)).toBe(0.5)
  expect(changeOf(3, 0)).toBeUndefined()
})
