import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type DayRange, daysPerPartition, missingRanges } from './usage-days.ts'

test.each([
  [1, 1],
  [90, 1],
  [200, 1],
  [201, 2],
  [3650, 19],
  [100_000, 500],
])('rows that are kept for %i days are in partitions of %i days', (days, width) => {
  expect(daysPerPartition(days)).toBe(width)
})

test('missing partitions are created around the existing ones', () => {
  const covered = [{ firstDay: 12, endDay: 13 }]
  expect(missingRanges(covered, { firstDay: 10, endDay: 15 }, 1)).toEqual([
    { firstDay: 10, endDay: 11 },
    { firstDay: 11, endDay: 12 },
    { firstDay: 13, endDay: 14 },
    { firstDay: 14, endDay: 15 },
  ])
  expect(missingRanges(covered, { firstDay: 10, endDay: 15 }, 7)).toEqual([
    { firstDay: 10, endDay: 12 },
    { firstDay: 13, endDay: 20 },
  ])
})

test('every wanted day is covered once, whatever existed before, and nothing remains to create', () => {
  const gaps = fc.array(fc.tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 1, max: 9 })), {
    maxLength: 8,
  })
  fc.assert(
    fc.property(gaps, fc.nat(40), fc.nat(30), fc.integer({ min: 1, max: 20 }), (steps, from, days, width) => {
      let day = 0
      const covered: DayRange[] = steps.map(([gap, length]) => {
        const firstDay = day + gap
        day = firstDay + length
        return { firstDay, endDay: day }
      })
      const wanted = { firstDay: from, endDay: from + days }
      const made = missingRanges(covered, wanted, width)
      const all = [...covered, ...made]
      for (let one = 0; one < 120; one += 1) {
        const holders = all.filter(({ firstDay, endDay }) => firstDay <= one && one < endDay).length
        expect(holders).toBeLessThanOrEqual(1)
        if (one >= wanted.firstDay && one < wanted.endDay) expect(holders).toBe(1)
      }
      for (const { firstDay, endDay } of made) {
        expect(endDay - firstDay).toBeGreaterThan(0)
        expect(endDay - firstDay).toBeLessThanOrEqual(width)
      }
      expect(missingRanges(all, wanted, width)).toEqual([])
    }),
  )
})
