import { describe, expect, test } from 'vitest'
import {
  formatClock,
  formatDay,
  formatDuration,
  formatRelative,
  formatTime,
  startOfDay,
  startOfMonth,
} from './time.ts'

const NOON = Date.UTC(2026, 10, 21, 12) / 1000

test('a time is shown in the given time zone', () => {
  expect(formatTime(NOON, 'en', 'UTC')).toBe('21 Nov 2026, 12:00:00')
  expect(formatTime(NOON, 'zh-CN', 'Asia/Shanghai')).toBe('2026/11/21 20:00:00')
})

test('a time that no Date can hold is shown as the end of the year 9999', () => {
  expect(formatTime(9_999_999_999_999, 'en', 'UTC')).toBe('31 Dec 9999, 23:59:59')
})

test('every English month has three letters', () => {
  const months = Array.from({ length: 12 }, (_, month) =>
    formatDay(Date.UTC(2026, month, 6) / 1000, 'en', 'UTC'),
  )
  expect(months.join(' ')).toBe('6 Jan 6 Feb 6 Mar 6 Apr 6 May 6 Jun 6 Jul 6 Aug 6 Sep 6 Oct 6 Nov 6 Dec')
})

test.each([
  [5, '11:59:55'],
  [7200, '10:00:00'],
  [86_400, '20 Nov, 12:00:00'],
  [-60, '12:01:00'],
  [365 * 86_400, '21 Nov 2025, 12:00:00'],
])('a time %d seconds ago is shown as %s', (age, text) => {
  expect(formatClock(NOON - age, NOON, 'en', 'UTC')).toBe(text)
})

test('the day that counts as today depends on the time zone', () => {
  expect(formatClock(NOON - 9 * 3600, NOON, 'en', 'America/New_York')).toBe('20 Nov, 22:00:00')
})

test.each([
  [5, 'now'],
  [90, '1 min. ago'],
  [7200, '2 hr. ago'],
  [3 * 86_400, '3 days ago'],
  [-60, 'now'],
])('a time %d seconds ago is %s, relative to now', (age, text) => {
  expect(formatRelative(NOON - age, NOON, 'en')).toBe(text)
})

test.each([
  [380, '380 ms'],
  [999.6, '1,000 ms'],
  [4210, '4.2 s'],
  [59_949, '59.9 s'],
  [125_000, '2 min 5 s'],
])('a duration of %d ms is shown as %s', (milliseconds, text) => {
  expect(formatDuration(milliseconds, 'en')).toBe(text)
})

describe('the start of a day', () => {
  test.each([
    ['UTC', '2026-11-21T00:00:00Z'],
    ['Asia/Shanghai', '2026-11-20T16:00:00Z'],
    ['Asia/Kolkata', '2026-11-20T18:30:00Z'],
    ['America/New_York', '2026-11-21T05:00:00Z'],
  ])('the start of a day is right in %s', (zone, start) => {
    expect(new Date(startOfDay(NOON, zone) * 1000).toISOString()).toBe(start.replace('Z', '.000Z'))
  })

  test('the console finds the start of a day on which the clock is changed', () => {
    const at = Date.UTC(2026, 10, 1, 20) / 1000
    expect(new Date(startOfDay(at, 'America/New_York') * 1000).toISOString()).toBe('2026-11-01T04:00:00.000Z')
  })

  test("the console shows a day as beginning at one o'clock where the clock is put forward at midnight", () => {
    const at = Date.UTC(2026, 2, 8, 20) / 1000
    expect(new Date(startOfDay(at, 'America/Havana') * 1000).toISOString()).toBe('2026-03-08T05:00:00.000Z')
  })
})

test('the console finds the start of a month', () => {
  expect(new Date(startOfMonth(NOON, 'America/New_York') * 1000).toISOString()).toBe(
    '2026-11-01T04:00:00.000Z',
  )
})
