import { expect, test } from 'vitest'
import { dayRangeOf, LOG_PERIODS, periodFromUrl, timeRangeOf, USAGE_PERIODS } from './period.ts'

const NOW = Date.UTC(2026, 10, 21, 12, 30) / 1000

/** The start and the end of a period. */
function span(search: Readonly<Record<string, string>>, timeZone = 'UTC'): readonly (string | null)[] {
  const { from, to } = timeRangeOf(periodFromUrl(LOG_PERIODS, search, '7d'), search, NOW, timeZone, 'en')
  return [from, to].map((at) => (at === undefined ? null : new Date(at * 1000).toISOString().slice(0, 16)))
}

test.each([
  [{ period: 'yesterday' }, 'UTC', '2026-11-20T00:00', '2026-11-21T00:00'],
  [{ period: 'yesterday' }, 'Asia/Shanghai', '2026-11-19T16:00', '2026-11-20T16:00'],
  [{ period: 'last-month' }, 'America/New_York', '2026-10-01T04:00', '2026-11-01T04:00'],
  [{ period: 'month' }, 'UTC', '2026-11-01T00:00', null],
  [{ period: '90d' }, 'UTC', '2026-08-24T00:00', null],
  [{ period: 'all' }, 'UTC', null, null],
  [{ period: 'custom', from: '2026-11-01', to: '2026-11-03' }, 'UTC', '2026-11-01T00:00', '2026-11-04T00:00'],
  [
    { period: 'custom', from: '2026-11-01', to: '2026-11-01' },
    'America/New_York',
    '2026-11-01T04:00',
    '2026-11-02T05:00',
  ],
  [
    { period: 'custom', from: '2026-11-20T23', to: '2026-11-20T23' },
    'Asia/Shanghai',
    '2026-11-20T15:00',
    '2026-11-20T16:00',
  ],
  [
    { period: 'custom', from: '2026-11-21T10', to: '2026-11-21T10' },
    'UTC',
    '2026-11-21T10:00',
    '2026-11-21T11:00',
  ],
  [{ period: 'custom', from: '2026-12-20', to: '2026-12-24' }, 'UTC', '2026-11-21T00:00', null],
  [{ period: 'custom', from: '0002-11-20' }, 'UTC', '1970-01-01T00:00', null],
  [
    { period: 'custom', from: '0002-11-20', to: '0003-11-20' },
    'Asia/Shanghai',
    '1970-01-01T00:00',
    '1970-01-02T00:00',
  ],
  [{ period: 'custom', from: '2026-11-20', to: '2026-12-24' }, 'UTC', '2026-11-20T00:00', null],
  [{ period: 'custom', from: '2026-11-20', to: '2026-11-10' }, 'UTC', '2026-11-20T00:00', '2026-11-21T00:00'],
] as const)('the period of %o in %s is that of its days', (search, zone, from, to) => {
  expect(span(search, zone)).toEqual([from, to])
})

// 21 November 2026 is a Saturday, and 1 November a Sunday.
test.each([
  ['2026-11-21T12:30', 'en', 'UTC', '2026-11-16T00:00'],
  ['2026-11-21T12:30', 'zh', 'UTC', '2026-11-16T00:00'],
  ['2026-11-21T12:30', 'en-US', 'UTC', '2026-11-15T00:00'],
  ['2026-11-16T00:00', 'en', 'UTC', '2026-11-16T00:00'],
  ['2026-11-15T23:00', 'zh', 'Asia/Shanghai', '2026-11-15T16:00'],
  // The first of these days is in the month before, and in summer time.
  ['2026-11-01T20:00', 'en', 'America/New_York', '2026-10-26T04:00'],
])('at %s the week of %s in %s began at %s', (now, locale, zone, begin) => {
  const { from, to } = timeRangeOf('week', {}, Date.parse(`${now}Z`) / 1000, zone, locale)
  expect(new Date((from ?? 0) * 1000).toISOString().slice(0, 16)).toBe(begin)
  expect(to).toBeUndefined()
})

test('the day fields of the console begin with the days of the period that was shown before', () => {
  expect(dayRangeOf(timeRangeOf('yesterday', {}, NOW, 'UTC', 'en'), NOW, 'UTC')).toEqual({
    from: '2026-11-20',
    to: '2026-11-20',
  })
  expect(dayRangeOf(timeRangeOf('7d', {}, NOW, 'UTC', 'en'), NOW, 'UTC')).toEqual({
    from: '2026-11-15',
    to: '2026-11-21',
  })
})

test('the period "all" in the address of the usage page is replaced by the default period', () => {
  expect(periodFromUrl(USAGE_PERIODS, { period: 'all' }, '30d')).toBe('30d')
})
