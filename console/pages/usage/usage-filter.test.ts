import { expect, test } from 'vitest'
import {
  logSearchOfCacheBreak,
  usageQueryOf,
  groupingOf,
  logSearchOfInterval,
  searchOfSeries,
} from './usage-filter.ts'

const NOW = Date.UTC(2026, 10, 21, 12, 30, 15)

test.each([
  [{}, '2026-10-22T16:00:00.000Z', 'day'],
  [{ period: 'today' }, '2026-11-20T16:00:00.000Z', 'hour'],
  [{ period: 'yesterday' }, '2026-11-19T16:00:00.000Z', 'hour'],
  [{ period: 'hour' }, '2026-11-21T11:30:00.000Z', 'hour'],
  [{ period: 'month' }, '2026-10-31T16:00:00.000Z', 'day'],
  [{ period: 'custom', from: '2026-11-05', to: '2026-11-06' }, '2026-11-04T16:00:00.000Z', 'day'],
  [{ period: 'custom', from: '2026-01-01' }, '2025-12-31T16:00:00.000Z', 'month'],
])('the sums of %o begin with a day of the chosen time zone', (search, start, step) => {
  const params = usageQueryOf(search, 'own', NOW, 'Asia/Shanghai', 'en')
  expect([new Date(params.from * 1000).toISOString(), params.step]).toEqual([start, step])
})

test('a usage period of chosen days ends at the end of its last day', () => {
  const { to } = usageQueryOf(
    { period: 'custom', from: '2026-11-05', to: '2026-11-06' },
    'own',
    NOW,
    'UTC',
    'en',
  )
  expect(new Date(to * 1000).toISOString()).toBe('2026-11-07T00:00:00.000Z')
})

test('usage is grouped and filtered by service tier and region, and links to the log with the same filters', () => {
  const search = { by: 'tier', tier: 'fast', region: 'us' }
  expect(usageQueryOf(search, 'own', NOW, 'UTC', 'en')).toMatchObject({
    by: 'service_tier',
    service_tier: ['fast'],
    region: ['us'],
  })
  const slot = logSearchOfInterval(search, NOW / 1000, { step: 'day', tz: 'UTC' })
  expect(slot).toMatchObject({ tier: 'fast', region: 'us' })
})

test('members can neither group nor filter usage by user and channel', () => {
  expect(groupingOf({ by: 'user' }, 'own')).toBe('model')
  expect(usageQueryOf({ user: 'ann', by: 'channel' }, 'own', NOW, 'UTC', 'en')).not.toHaveProperty('username')
  expect(usageQueryOf({ user: 'ann', by: 'channel' }, 'all', NOW, 'UTC', 'en')).toMatchObject({
    username: ['ann'],
    by: 'channel',
  })
})

test.each([
  ['hour', '2026-11-20T15:00:00Z', '2026-11-20T23', '2026-11-20T23'],
  ['day', '2026-11-20T16:00:00Z', '2026-11-21', '2026-11-21'],
  ['month', '2026-10-31T16:00:00Z', '2026-11-01', '2026-11-30'],
] as const)('a slot of the step %s leads to the log of its time, with the filters', (step, at, from, to) => {
  const slot = Date.parse(at) / 1000
  expect(logSearchOfInterval({ model: 'm', by: 'user' }, slot, { step, tz: 'Asia/Shanghai' })).toMatchObject({
    period: 'custom',
    from,
    to,
    model: 'm',
  })
})

test.each([
  [{ model: 'm' }, { period: '30d', model: 'm' }],
  [
    { period: 'custom', from: '2026-11-01', to: '2026-11-05', user: 'ann' },
    { period: 'custom', from: '2026-11-01', to: '2026-11-05', user: 'ann' },
  ],
])('a reason of cache breaks leads to the log of the period and filters of %o', (search, expected) => {
  expect(logSearchOfCacheBreak({ ...search, by: 'key' }, 'key_moved')).toEqual({
    ...expected,
    break: 'key_moved',
  })
})

test.each([
  ['all', { by: 'user' }, 'user', { user: 'ann', by: 'model' }],
  ['all', {}, 'model', { model: '7', by: 'key' }],
  ['all', { by: 'user', model: 'gpt' }, 'user', { user: 'ann', by: 'key' }],
  ['own', { key: '#3' }, 'model', { model: '7', by: 'group' }],
  ['all', { by: 'model', errors: 'channel' }, 'channel', { channel: 'ann', errors: undefined }],
] as const)(
  'in the scope %s, the page %o shows one series of %s alone, divided by what has no filter',
  (scope, search, by, expected) => {
    expect(searchOfSeries(search, scope, by, { key: '7', label: 'ann' })).toEqual(expected)
  },
)

test('a usage period up to now asks for the same until the half hour is over, and then for the next one', () => {
  const at = (time: string) => usageQueryOf({}, 'own', Date.parse(time), 'UTC', 'en')
  const first = at('2026-11-21T12:30:00Z')
  expect(new Date(first.to * 1000).toISOString()).toBe('2026-11-21T13:00:00.000Z')
  expect(at('2026-11-21T12:59:59Z')).toEqual(first)
  expect(at('2026-11-21T13:00:00Z').to - first.to).toBe(1800)
})
