import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Usage, UsagePoint } from '../../api/usage.ts'
import { largestSeriesData } from './chart-rows.ts'
import {
  relativeChange,
  ZERO_USAGE_POINT,
  sumsOfSeries,
  topSeriesAndOthers,
  sumsOfIntervals,
  sumOfUsagePoints,
} from './usage-sums.ts'

const point = fc.record(
  Object.fromEntries(
    Object.keys(ZERO_USAGE_POINT).map((name) => [name, fc.nat(1_000_000)]),
  ) as unknown as Record<keyof UsagePoint, fc.Arbitrary<number>>,
)

const EMPTY: Usage = {
  step: 'day',
  tz: 'UTC',
  slots: [],
  series: [],
  other: null,
  totals: ZERO_USAGE_POINT,
  breaks: {},
  previous: ZERO_USAGE_POINT,
  latency: [],
  exact: true,
}

const usages: fc.Arbitrary<Usage> = fc.integer({ min: 1, max: 4 }).chain((slots) => {
  const points = fc.array(point, { minLength: slots, maxLength: slots })
  return fc
    .record({
      series: fc.uniqueArray(
        fc.record({ key: fc.string(), label: fc.string(), points, place: fc.integer({ min: 1, max: 20 }) }),
        { maxLength: 9, selector: ({ place }) => place },
      ),
      other: fc.option(fc.record({ points })),
    })
    .map(({ series, other }) => ({
      ...EMPTY,
      slots: Array.from({ length: slots }, (_, slot) => slot * 86_400),
      series: series.map(({ place, ...one }) => ({ ...one, ranks: { quota: place, failed: 21 - place } })),
      other,
    }))
})

test('the usage chart, its table and its intervals have the same sum, and it has at most six series besides Other', () => {
  fc.assert(
    fc.property(usages, (usage) => {
      const shown = topSeriesAndOthers(usage, 'quota', 'Other')
      expect(shown.length).toBeLessThanOrEqual(7)
      const whole = sumOfUsagePoints(sumsOfIntervals(usage))
      expect(sumOfUsagePoints(shown.flatMap(({ points }) => points)).quota).toBe(whole.quota)
      expect(sumOfUsagePoints(sumsOfSeries(usage, 'Other').map(({ sum }) => sum))).toEqual(whole)
    }),
  )
})

test('all usage charts have the same six series, those with the highest cost, in the same colours, and Other for the rest', () => {
  const series = Array.from({ length: 8 }, (_, index) => ({
    key: `m${index}`,
    label: `m${index}`,
    ranks: { quota: index + 1, failed: 8 - index },
    points: [{ ...ZERO_USAGE_POINT, quota: 8 - index, failed: index + 1 }],
  }))
  const usage = { ...EMPTY, slots: [0], series }
  const coloursOf = (figure: 'quota' | 'failed') =>
    largestSeriesData(usage, figure, 'Other').series.map(({ label, color }) => `${label} ${color}`)
  expect(coloursOf('quota')).toEqual([
    'm0 var(--series-1)',
    'm1 var(--series-2)',
    'm2 var(--series-3)',
    'm3 var(--series-4)',
    'm4 var(--series-5)',
    'm5 var(--series-6)',
    'Other var(--muted)',
  ])
  expect(coloursOf('failed')).toEqual(coloursOf('quota'))
})

test('a series without cost has a colour while there are some left, and the same one in each chart', () => {
  const points = (quota: number, failed: number) => [{ ...ZERO_USAGE_POINT, quota, failed }]
  const series = [
    { key: 'paid', label: 'paid', ranks: { quota: 1, failed: 2 }, points: points(5, 1) },
    { key: 'broken', label: 'broken', ranks: { failed: 1 }, points: points(0, 9) },
  ]
  const usage = { ...EMPTY, slots: [0], series }
  const coloursOf = (figure: 'quota' | 'failed') =>
    largestSeriesData(usage, figure, 'Other').series.map(({ label, color }) => `${label} ${color}`)
  const expected = ['paid var(--series-1)', 'broken var(--series-2)']
  expect(coloursOf('quota')).toEqual(expected)
  expect(coloursOf('failed')).toEqual(expected)
})

test('the change of a usage figure is shown only if the previous period has at least ten calls and a value', () => {
  expect(relativeChange(3, 2, 10)).toBe(0.5)
  expect(relativeChange(3, 2, 9)).toBeUndefined()
  expect(relativeChange(3, 0, 10)).toBeUndefined()
})

test('the change of a usage figure is not shown if it is more than ten times', () => {
  expect(relativeChange(20, 2, 10)).toBe(9)
  expect(relativeChange(21, 2, 10)).toBeUndefined()
})
