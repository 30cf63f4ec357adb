import { expect, test } from 'vitest'
import { dayRangeOf, LOG_PERIODS, periodFromUrl, timeRangeOf, USAGE_PERIODS } from './period.ts'

const NOW = Date.UTC(2026, 10, 21, 12, 30) / 1000

/** The start and the end of a period. */
function span(search: Readonly<Record<string, string>>, timeZone = 'UTC'): readonly (string | null)[] {
  const { from, to } = timeRangeOf(periodFromUrl(LOG_PERIODS, search, '7d'), search, NOW, timeZone)
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
  [{ period: 'custom', from: '2026-11-20', to: '2026-12-24' }, 'UTC', '2026-11-20T00:00', null],
  [{ period: 'custom', from: '2026-11-20', to: '2026-11-10' }, 'UTC', '2026-11-20T00:00', '2026-11-21T00:00'],
] as const)('the period of %o in %s is that of its days', (search, zone, from, to) => {
  expect(span(search, zone)).toEqual([from, to])
})

test('the day fields of the console begin with the days of the period that was shown before', () => {
  expect(dayRangeOf(timeRangeOf('yesterday', {}, NOW, 'UTC'), NOW, 'UTC')).toEqual({
    from: '2026-11-20',
    to: '2026-11-20',
  })
  expect(dayRangeOf(timeRangeOf('7d', {}, NOW, 'UTC'), NOW, 'UTC')).toEqual({
    from: '2026-11-15',
    to: '2026-11-21',
  })
})

test('the period "all" in the address of the usage page is replaced by the default period', () => {
  expect(periodFromUrl(USAGE_PERIODS, { period: 'all' }, '30d')).toBe('30d')
})
