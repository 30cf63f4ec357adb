import { expect, test } from 'vitest'
import { filterOf, isFiltered, periodOf } from './log-filter.ts'

const NOW = Date.UTC(2026, 10, 21, 12, 30, 15)

test.each([
  [{}, '2026-11-14T16:00:00.000Z'],
  [{ period: 'today' }, '2026-11-20T16:00:00.000Z'],
  [{ period: 'hour' }, '2026-11-21T11:30:00.000Z'],
])('the period of %o begins with a day of the chosen time zone', (search, start) => {
  const { start_timestamp: at } = filterOf(search, 'own', NOW, 'Asia/Shanghai')
  expect(new Date((at ?? 0) * 1000).toISOString()).toBe(start)
})

test('the period "all" has no beginning', () => {
  expect(filterOf({ period: 'all' }, 'own', NOW, 'UTC').start_timestamp).toBeUndefined()
})

test('an unknown period in the address becomes the default', () => {
  expect(periodOf({ period: 'century' })).toBe('7d')
})

test('members cannot filter by user and channel', () => {
  expect(filterOf({ user: 'a', channel: 'b' }, 'own', NOW, 'UTC')).toMatchObject({
    username: undefined,
    channel: undefined,
  })
  expect(filterOf({ user: 'a', channel: 'b' }, 'all', NOW, 'UTC')).toMatchObject({
    username: 'a',
    channel: 'b',
  })
})

test('the period alone does not count as a filter', () => {
  expect(isFiltered({ period: 'today' })).toBe(false)
  expect(isFiltered({ model: 'm' })).toBe(true)
  expect(isFiltered({ status: 'failed' })).toBe(true)
})

test('a status in the address means all reasons with this word; an unknown status is ignored', () => {
  expect(filterOf({ status: 'crash' }, 'own', NOW, 'UTC').reason).toBe('crash,lost-node')
  expect(filterOf({ status: 'lost' }, 'own', NOW, 'UTC').reason).toBeUndefined()
  expect(isFiltered({ status: 'lost' })).toBe(false)
})
