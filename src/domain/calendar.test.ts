import { expect, test } from 'vitest'
import { Calendar } from './calendar.ts'

const at = (text: string): number => Date.parse(text)

/** The starts of the steps, from the one that contains `from` up to `to`. */
function starts(zone: string, step: 'hour' | 'day' | 'month', from: string, to: string): string[] {
  const calendar = new Calendar(zone)
  const found: string[] = []
  for (let ms = calendar.startOf(step, at(from)); ms < at(to); ms = calendar.nextStart(step, ms))
    found.push(calendar.format(ms))
  return found
}

test('a day in Berlin has 23 hours when clocks are put forward and 25 when they are put back', () => {
  const spring = starts('Europe/Berlin', 'hour', '2026-03-28T23:00:00Z', '2026-03-29T22:00:00Z')
  expect(spring).toHaveLength(23)
  expect(spring.slice(1, 3)).toEqual(['2026-03-29T01:00:00+01:00', '2026-03-29T03:00:00+02:00'])
  const autumn = starts('Europe/Berlin', 'hour', '2026-10-24T22:00:00Z', '2026-10-25T23:00:00Z')
  expect(autumn).toHaveLength(25)
  expect(autumn.slice(2, 4)).toEqual(['2026-10-25T02:00:00+02:00', '2026-10-25T02:00:00+01:00'])
  expect(starts('Europe/Berlin', 'day', '2026-03-28T12:00:00Z', '2026-03-30T12:00:00Z')).toEqual([
    '2026-03-28T00:00:00+01:00',
    '2026-03-29T00:00:00+01:00',
    '2026-03-30T00:00:00+02:00',
  ])
})

test('hours and days in Kolkata begin at half hours of UTC', () => {
  expect(starts('Asia/Kolkata', 'hour', '2026-03-01T00:00:00Z', '2026-03-01T01:00:00Z')).toEqual([
    '2026-03-01T05:00:00+05:30',
    '2026-03-01T06:00:00+05:30',
  ])
  expect(new Calendar('Asia/Kolkata').startOf('day', at('2026-03-01T00:00:00Z'))).toBe(
    at('2026-02-28T18:30:00Z'),
  )
})

test('monthly steps of a calendar range begin with calendar months, and a time zone may be an offset such as +05:45', () => {
  expect(starts('America/New_York', 'month', '2024-01-31T12:00:00Z', '2024-04-02T00:00:00Z')).toEqual([
    '2024-01-01T00:00:00-05:00',
    '2024-02-01T00:00:00-05:00',
    '2024-03-01T00:00:00-05:00',
    '2024-04-01T00:00:00-04:00',
  ])
  expect(starts('+05:45', 'day', '2026-03-01T00:00:00Z', '2026-03-01T12:00:00Z')).toEqual([
    '2026-03-01T00:00:00+05:45',
  ])
})

test('a day without a midnight begins with its first hour, and a day with two midnights begins with the first one', () => {
  // On these days clocks go from 00:00 to 01:00 in Beirut, and from 01:00 back to 00:00 in Havana.
  expect(starts('Asia/Beirut', 'day', '2026-03-28T12:00:00Z', '2026-03-29T12:00:00Z').at(-1)).toBe(
    '2026-03-29T01:00:00+03:00',
  )
  expect(starts('America/Havana', 'day', '2026-11-01T12:00:00Z', '2026-11-01T13:00:00Z')).toEqual([
    '2026-11-01T00:00:00-04:00',
  ])
})

test('calendar hours never overlap in a time zone whose clocks move by half an hour', () => {
  const hours = starts('Australia/Lord_Howe', 'hour', '2026-04-04T12:00:00Z', '2026-04-04T18:00:00Z')
  expect(new Set(hours).size).toBe(hours.length)
  expect(hours.map((text) => at(text))).toEqual(hours.map((text) => at(text)).toSorted((a, b) => a - b))
})

test('an hour in which clocks move by half an hour ends there, and the next one begins', () => {
  const back = starts('Australia/Lord_Howe', 'hour', '2026-04-04T14:00:00Z', '2026-04-04T16:00:00Z')
  expect(back).toEqual([
    '2026-04-05T01:00:00+11:00',
    '2026-04-05T01:30:00+10:30',
    '2026-04-05T02:00:00+10:30',
  ])
  const forward = starts('Australia/Lord_Howe', 'hour', '2026-10-03T14:30:00Z', '2026-10-03T16:30:00Z')
  expect(forward).toEqual([
    '2026-10-04T01:00:00+10:30',
    '2026-10-04T02:30:00+11:00',
    '2026-10-04T03:00:00+11:00',
  ])
  const calendar = new Calendar('Australia/Lord_Howe')
  for (const text of [...back, ...forward])
    for (const minutes of [0, 29])
      expect(calendar.startOf('hour', at(text) + minutes * 60_000)).toBe(at(text))
})

test('the period before a week has the same length by the clocks, even if daylight saving time made it an hour shorter', () => {
  const calendar = new Calendar('Europe/Berlin')
  const week = [at('2026-03-29T22:00:00Z'), at('2026-04-05T22:00:00Z')] as const
  expect(calendar.format(calendar.previousStart(...week))).toBe('2026-03-23T00:00:00+01:00')
})

test('a calendar with an unknown time zone is refused', () => {
  expect(() => new Calendar('Europe/Nowhere')).toThrow(RangeError)
})
