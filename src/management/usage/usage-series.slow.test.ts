import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { settleAll } from '../../../test/ledger/settled-calls.ts'
import { ENGINES, rowsWithAccount } from '../../../test/stores/engines.ts'
import { newToken, newUser, settledCall } from '../../../test/stores/rows.ts'
import { randomFrom } from '../../../test/fixtures/random.ts'
import { Calendar, type CalendarStep } from '../../domain/calendar.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import { firstCallIdAt } from '../../store/usage-id.ts'
import { SERIES_DIMENSIONS } from '../../store/operations/usage-sum-queries.ts'
import { seriesPeriodOf, usageSeries } from './usage-series.ts'

const DAY = 86_400
/** The day before clocks go forward in Berlin, and 12 days of calls from then on. */
const FIRST = Date.UTC(2026, 2, 28) / 1000
const LAST = FIRST + 12 * DAY
const NOW_MS = LAST * 1000

const OWNERS = [
  { userId: 1, tokenId: 1 },
  { userId: 2, tokenId: 2 },
  { userId: 2, tokenId: 3 },
] as const
const REASONS = ['complete', 'estimated', 'client_gone', 'cut', 'failed', 'crash'] as const

function calls(count: number): SettledCall[] {
  const random = randomFrom(7)
  const below = (limit: number): number => Math.floor(random() * limit)
  return Array.from({ length: count }, (_, index) => {
    const reason = REASONS[below(REASONS.length)] ?? 'complete'
    const endedMs = (FIRST + below(12 * DAY)) * 1000
    return settledCall(OWNERS[below(3)] ?? OWNERS[0], `${firstCallIdAt(endedMs)}-${index}`, {
      ended_ms: endedMs,
      reason,
      delivered: reason !== 'failed',
      quota: below(1000),
      model: `m${below(4)}`,
      channel: `c${below(3)}`,
      service_tier: ['standard', 'fast', 'flex'][below(3)] ?? '',
      region: ['', 'us'][below(2)] ?? '',
      duration_ms: below(5000),
      first_byte_ms: reason === 'failed' ? null : below(500),
    })
  })
}

async function filledStore(engine: (typeof ENGINES)[number], given: readonly SettledCall[]) {
  const opened = await rowsWithAccount(engine)
  const { store } = opened
  const { id } = await store.write('createUser', newUser({ username: 'ben' }))
  for (const key of ['k2', 'k3']) await store.write('createToken', newToken(id, { name: key, key }))
  await settleAll(engine, opened, given)
  return opened
}

const keyOf = {
  model: 'model',
  token: 'token_id',
  user: 'user_id',
  channel: 'channel',
  group: 'group',
  service_tier: 'service_tier',
  region: 'region',
} as const

describe.each(ENGINES)('a series of usage on $name', (engine) => {
  test('each step of a usage series is the sum of its calls, in every time zone and by every dimension', async () => {
    const given = calls(300)
    const { store } = await filledStore(engine, given)
    const halfHour = fc.integer({ min: FIRST / 1800 - 60, max: LAST / 1800 - 1 })
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          from: halfHour,
          length: fc.integer({ min: 1, max: 17 * 48 }),
          tz: fc.constantFrom(
            'UTC',
            'Europe/Berlin',
            'Asia/Kolkata',
            'America/New_York',
            'Pacific/Kiritimati',
          ),
          step: fc.constantFrom<CalendarStep>('hour', 'day', 'month'),
          by: fc.constantFrom(...SERIES_DIMENSIONS),
          top: fc.integer({ min: 0, max: 5 }),
          filter: fc.constantFrom(
            {},
            { user_id: 2 },
            { username: 'ben', model: 'm1' },
            { model: 'm1' },
            { token_name: 'k3' },
            { channel: 'c1', group: 'default' },
            { username: 'nobody' },
            { service_tier: ['fast', 'flex'] },
            { user_id: 2, region: 'us' },
          ),
        }),
        async ({ from, length, tz, step, by, top, filter }) => {
          fc.pre(length <= 390 * 2 || step !== 'hour')
          const toS = (from + length) * 1800
          const period = seriesPeriodOf({ from: from * 1800, to: toS, tz, step, top }, NOW_MS)
          const series = await usageSeries({ store }, { period, filter, by })
          const matching = given.filter(
            (call) =>
              call.ended_ms >= period.fromS * 1000 &&
              call.ended_ms < toS * 1000 &&
              filter.username !== 'nobody' &&
              (filter.user_id === undefined && filter.username === undefined ? true : call.user_id === 2) &&
              (filter.model === undefined || call.model === filter.model) &&
              (filter.token_name === undefined || call.token_id === 3) &&
              (filter.channel === undefined || call.channel === filter.channel) &&
              (filter.service_tier === undefined || call.service_tier !== 'standard') &&
              (filter.region === undefined || call.region === filter.region),
          )
          const calendar = new Calendar(tz)
          const stepOf = ({ ended_ms: endedMs }: SettledCall): number =>
            series.slots.indexOf(calendar.startOf(step, endedMs) / 1000)
          // The key of a channel is an id, which calls do not have.
          const named = series.series.map((one) => ({ ...one, key: by === 'channel' ? one.label : one.key }))
          const all = by === 'none' ? named : [...named, { key: null, ...series.other }]
          const shown = new Set(named.map(({ key }) => key))
          for (const { key, points = [] } of all) {
            const expected = series.slots.map(() => ({ requests: 0, failed: 0, quota: 0, output: 0 }))
            for (const call of matching) {
              const value = by === 'none' ? '' : String(call[keyOf[by]])
              if (key === null ? shown.has(value) : value !== key) continue
              const point = expected[stepOf(call)]
              if (!point) throw new Error('a call lies in no step')
              point.requests += call.delivered ? 1 : 0
              point.failed += ['failed', 'cut', 'crash'].includes(call.reason) ? 1 : 0
              point.quota += call.quota
              point.output += call.usage.output
            }
            if (key !== null || series.other) expect(points).toMatchObject(expected)
            else
              expect(matching.filter((call) => by !== 'none' && !shown.has(String(call[keyOf[by]])))).toEqual(
                [],
              )
          }
          expect(series.exact).toBe(true)
          expect(series.series.length).toBeLessThanOrEqual(by === 'none' ? 1 : top)
          expect(series.totals.quota).toBe(matching.reduce((sum, { quota }) => sum + quota, 0))
          const whole = (call: SettledCall): boolean => ['complete', 'estimated'].includes(call.reason)
          const timed = new Set(matching.filter(whole).map(stepOf))
          expect(series.latency.flatMap(({ p50_ms }, index) => (p50_ms === null ? [] : [index]))).toEqual(
            [...timed].toSorted((one, other) => one - other),
          )
        },
      ),
      { numRuns: 60 },
    )
  })

  test('a usage series has the totals of the preceding period, and is marked inexact in time zones with quarter hours', async () => {
    const given = calls(100)
    const { store } = await filledStore(engine, given)
    const seriesIn = (tz: string) => {
      const period = seriesPeriodOf({ from: FIRST + 6 * DAY, to: LAST, tz, step: 'day' }, NOW_MS)
      return usageSeries({ store }, { period, filter: {}, by: 'none' })
    }
    const series = await seriesIn('UTC')
    const before = given.filter(({ ended_ms: endedMs }) => endedMs < (FIRST + 6 * DAY) * 1000)
    expect(series.previous.quota).toBe(before.reduce((sum, { quota }) => sum + quota, 0))
    const kathmandu = await seriesIn('Asia/Kathmandu')
    expect(kathmandu.exact).toBe(false)
    expect(kathmandu.totals).toEqual(series.totals)
  })
})

test.each([
  [{ to: 100, from: 100 }, /^to: /],
  [{ from: NOW_MS / 1000 + 1, to: NOW_MS / 1000 + 5000 }, /^from: .*future/],
  [{ from: LAST - 401 * 3600, to: LAST, step: 'hour' }, /^step: .*400/],
  [{ from: 0, to: LAST, step: 'hour' }, /^step: .*400/],
  [{ tz: 'Mars/Olympus' }, /^tz: /],
] as const)('the period %j of a usage series is refused', (query, message) => {
  expect(() => seriesPeriodOf(query, NOW_MS)).toThrow(message)
})

test('a usage series with 400 steps of an hour is accepted', () => {
  expect(seriesPeriodOf({ from: LAST - 400 * 3600, to: LAST, step: 'hour' }, NOW_MS).starts).toHaveLength(400)
})
