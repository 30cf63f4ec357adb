import { describe, expect, test } from 'vitest'
import { daysUntilRetirement, parseIsoDay } from './model-retirement.ts'

describe('the day of an end', () => {
  test.each([
    ['2026-12-11', '2026-12-11'],
    ['2026-12-11T00:00:00Z', '2026-12-11'],
    ['2026-12-11T23:30:00-05:00', '2026-12-12'],
    ['2028-02-29', '2028-02-29'],
  ])('the end of a model is read as a day: %s as %s', (given, day) => expect(parseIsoDay(given)).toBe(day))

  test.each([
    '2026-02-29',
    '2026-13-01',
    '2026-1-1',
    'tomorrow',
    '',
    '2026-12-11 00:00',
    20_261_211,
    null,
    {},
  ])('a value that is not a day is not read as the end of a model: %j', (given) =>
    expect(parseIsoDay(given)).toBeUndefined(),
  )
})

test('the days until a model is shut down are rounded up, and 0 once the date has passed', () => {
  const end = { on: '2026-12-11' }
  expect(daysUntilRetirement(end, Date.parse('2026-12-10T00:00:00Z'))).toBe(1)
  expect(daysUntilRetirement(end, Date.parse('2026-12-09T23:59:59Z'))).toBe(2)
  expect(daysUntilRetirement(end, Date.parse('2026-12-11T00:00:00Z'))).toBe(0)
  expect(daysUntilRetirement(end, Date.parse('2027-12-11T00:00:00Z'))).toBe(0)
})
