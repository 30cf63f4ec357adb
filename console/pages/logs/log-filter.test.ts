import { expect, test } from 'vitest'
import {
  callFilterOf,
  findCallId,
  isLogFiltered,
  logTimeRange,
  refusalCountQueryOf,
  refusedCallFilterOf,
} from './log-filter.ts'

const NOW = Date.UTC(2026, 10, 21, 12, 30, 15)
const OPEN = { from: undefined, to: undefined }

test.each([
  [{}, '2026-11-14T16:00:00.000Z'],
  [{ period: 'today' }, '2026-11-20T16:00:00.000Z'],
  [{ period: 'hour' }, '2026-11-21T11:30:00.000Z'],
])('the period of %o begins with a day of the chosen time zone', (search, start) => {
  const { from } = logTimeRange(search, NOW, 'Asia/Shanghai', 'en')
  expect(new Date((from ?? 0) * 1000).toISOString()).toBe(start)
})

test('an unknown period in the address of the log becomes the default period', () => {
  expect(logTimeRange({ period: 'century' }, NOW, 'UTC', 'en')).toEqual(
    logTimeRange({ period: '7d' }, NOW, 'UTC', 'en'),
  )
})

test.each(['', '.3', '.1.2.1'])(
  'the id of a call with %o after it is found in an error message',
  (numbers) => {
    const id = `01a220c6-f74b-7d26-8679-0e7abf031033${numbers}`
    expect(findCallId(`no quota is left (request id: ${id}).`)).toBe(id)
  },
)

test('members cannot filter the log by user and channel', () => {
  expect(callFilterOf({ user: 'a', channel: 'b' }, 'own', OPEN)).toMatchObject({ username: [], channel: [] })
  expect(callFilterOf({ user: 'a', channel: 'b' }, 'all', OPEN)).toMatchObject({
    username: ['a'],
    channel: ['b'],
  })
})

test('a filter in the address of the log may have several values', () => {
  expect(callFilterOf({ model: 'a,b', key: '#7,own', cause: 'spent,none' }, 'own', OPEN)).toMatchObject({
    model_name: ['a', 'b'],
    token_id: ['7'],
    token_name: ['own'],
    cause: ['spent'],
  })
})

test('the period alone does not count as a filter of the log', () => {
  expect(isLogFiltered({ period: 'today' })).toBe(false)
  expect(isLogFiltered({ model: 'm' })).toBe(true)
  expect(isLogFiltered({ status: 'failed' })).toBe(true)
})

test('a status in the address of the log selects every reason that is shown under it, and an unknown status is ignored', () => {
  expect(callFilterOf({ status: 'crash' }, 'own', OPEN).reason).toBe('crash,lost-node')
  expect(callFilterOf({ status: 'lost' }, 'own', OPEN).reason).toBeUndefined()
  expect(isLogFiltered({ status: 'lost' })).toBe(false)
})

test('the log is filtered by service tier and region', () => {
  const search = { tier: 'fast,flex', region: 'us' }
  expect(callFilterOf(search, 'own', OPEN)).toMatchObject({
    service_tier: ['fast', 'flex'],
    region: ['us'],
  })
  expect(isLogFiltered(search)).toBe(true)
})

test('the log is filtered by batch, which refused calls are not', () => {
  const search = { batch: 'batch_1' }
  expect(callFilterOf(search, 'own', OPEN)).toMatchObject({ batch: ['batch_1'] })
  expect(isLogFiltered(search)).toBe(true)
  expect(refusedCallFilterOf(search, 'own', OPEN)).toMatchObject({ batch: undefined })
})

test('the log is filtered by session and by known reasons of cache breaks', () => {
  const search = { session: '0123456789abcdef', break: 'key_moved,other' }
  expect(callFilterOf(search, 'own', OPEN)).toMatchObject({
    session: ['0123456789abcdef'],
    cache_break: ['key_moved'],
  })
  expect(isLogFiltered({ session: '0123456789abcdef' })).toBe(true)
  expect(isLogFiltered({ break: 'key_moved' })).toBe(true)
  expect(refusedCallFilterOf(search, 'own', OPEN)).toMatchObject({
    session: undefined,
    cache_break: undefined,
  })
})

test('refused calls are counted where the counters know the filters and the half hours of the period', () => {
  const day = { from: Date.UTC(2026, 10, 21) / 1000, to: undefined }
  const counters = refusalCountQueryOf({ code: 'overloaded', user: 'ann' }, 'all', day, NOW)
  expect(counters).toMatchObject({ from: day.from, code: ['overloaded'], username: ['ann'] })
  expect(new Date((counters?.to ?? 0) * 1000).toISOString()).toBe('2026-11-21T13:00:00.000Z')
  expect(refusalCountQueryOf({ user: 'ann' }, 'own', day, NOW)).not.toHaveProperty('username')
  expect(refusalCountQueryOf({ model: 'gpt' }, 'all', day, NOW)).toBeUndefined()
  expect(refusalCountQueryOf({}, 'all', { ...day, from: day.from + 60 }, NOW)).toBeUndefined()
  expect(refusalCountQueryOf({}, 'all', OPEN, NOW)).toBeUndefined()
})
