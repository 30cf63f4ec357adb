import { expect, test, describe } from 'vitest'
import type { CalendarStep } from '../../src/domain/calendar.ts'
import { periodOf } from '../../src/management/usage/series-query.ts'
import { usageSeries } from '../../src/management/usage/usage-series.ts'
import type { SeriesDimension } from '../../src/store/operations/series-tables.ts'
import { LATENCY_COLUMNS, POINT_COLUMNS, POINT_TABLES, SLOTS_PER_DAY } from '../../src/store/usage-points.ts'
import { ENGINES, openedRows, type TestDatabase } from '../store-engines.ts'
import { newToken, newUser } from '../store-rows.ts'

const DAY_S = 86_400
const KEYS = 1000
const USERS = 200
const CALLS_PER_DAY = 27_400
const SLOT_DAYS = 100
const YEAR = 365
const TODAY = Math.floor(Date.now() / 1000 / DAY_S)
const RUNS = 3

/** Each key uses two models, and each model is at five channels. */
const ROUTE = `'model-' || ((token_id + n.i % 2) % 20), 'channel-' || (((token_id + n.i % 2) % 20 * 5 + n.i / 2 % 3 * 2) % 50), 'default'`

/**
 * A year of 10 million calls by 1,000 keys over 20 models and 50 channels: half hours of the last 100 days,
 * with a row for each call, and all days.
 */
async function fillYear({ sql }: TestDatabase): Promise<void> {
  const counts = 'requests, quota, input_tokens, output_tokens, total_5, first_3'
  const perSlot = Math.floor(CALLS_PER_DAY / SLOTS_PER_DAY)
  await sql(`
    with recursive n(i) as (select 0 union all select i + 1 from n where i < ${perSlot * SLOTS_PER_DAY * SLOT_DAYS - 1}),
      calls as (select i, ${(TODAY - SLOT_DAYS) * SLOTS_PER_DAY} + i / ${perSlot} as slot, i % ${KEYS} * 79 % ${KEYS} + 1 as token_id from n)
    insert into usage_slots (slot, user_id, token_id, model, channel, group_name, ${counts})
    select slot, (token_id - 1) % ${USERS} + 1, token_id, ${ROUTE.replaceAll('n.i', 'i')}, 1, 1000 + i % 777, 900, 100, 1, 1 from calls`)
  const days =
    'requests, input_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, web_searches, quota'
  await sql(`
    with recursive n(i) as (select 0 union all select i + 1 from n where i < 5), t(token_id) as (select 1 union all select token_id + 1 from t where token_id < ${KEYS}),
      d(day) as (select ${TODAY - YEAR} union all select day + 1 from d where day < ${TODAY - SLOT_DAYS - 1})
    insert into usage_days (day, user_id, token_id, model, channel, group_name, ${days})
    select day, (token_id - 1) % ${USERS} + 1, token_id, ${ROUTE}, 5, 4500, 0, 0, 0, 500, 0, 0, 7000 from d, t, n`)
  await sql(`
    insert into usage_days (day, user_id, token_id, model, channel, group_name, ${days})
    select slot / ${SLOTS_PER_DAY}, user_id, token_id, model, channel, group_name, sum(requests), sum(input_tokens), 0, 0, 0, sum(output_tokens), 0, 0, sum(quota)
    from usage_slots group by 1, 2, 3, 4, 5, 6`)
  const all = [...POINT_COLUMNS, ...LATENCY_COLUMNS]
  for (const { name, key } of POINT_TABLES.slice(1)) {
    const [time = ''] = key
    const shared = ['requests', 'quota', 'input_tokens', 'output_tokens']
    const from = time === 'slot' ? 'usage_slots' : 'usage_days'
    const columns = time === 'slot' ? all : shared
    await sql(
      `insert into ${name} (${[...key, ...columns].join(', ')})
       select ${[...key, ...columns.map((column) => `sum(${column})`)].join(', ')} from ${from} group by ${key.join(', ')}`,
    )
  }
}

interface Case {
  readonly from: number
  readonly to: number
  readonly by: SeriesDimension
  readonly tz: string
  readonly step: CalendarStep
  readonly userId?: number
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

describe.each(ENGINES)('a year of 10 million calls on $name', (engine) => {
  test('is summed up within two passes over the daily sums, by any dimension', async () => {
    const { store, database } = await openedRows(engine)
    for (let id = 1; id <= USERS; id += 1)
      await store.write('createUser', newUser({ username: `user-${id}` }))
    for (let id = 1; id <= KEYS; id += 1)
      await store.write(
        'createToken',
        newToken(((id - 1) % USERS) + 1, { name: `key-${id}`, key: `key-${id}` }),
      )
    await fillYear(database)
    if (engine.name === 'PostgreSQL') await database.sql('analyze')
    const timed = async (work: () => Promise<unknown>): Promise<number> => {
      const times: number[] = []
      for (let run = 0; run < RUNS; run += 1) {
        const start = performance.now()
        await work()
        times.push(performance.now() - start)
      }
      return median(times)
    }
    const pass = await timed(() =>
      database.sql(
        'select day, model, sum(quota), sum(requests), sum(input_tokens), sum(output_tokens) from usage_days group by day, model',
      ),
    )
    console.log(`${engine.name}: one pass over the daily sums: ${Math.round(pass)} ms`)
    const toS = TODAY * DAY_S
    const year = { from: (TODAY - YEAR) * DAY_S, to: toS }
    const cases: readonly Case[] = [
      ...(['model', 'token', 'user', 'channel', 'none'] as const).map((by) => ({
        ...year,
        by,
        tz: 'UTC',
        step: 'day' as const,
      })),
      { ...year, by: 'model', tz: 'Europe/Berlin', step: 'day' },
      { ...year, by: 'token', tz: 'Europe/Berlin', step: 'month' },
      { ...year, by: 'model', tz: 'America/New_York', step: 'day' },
      { ...year, by: 'model', tz: 'UTC', step: 'day', userId: 7 },
      { from: toS - 399 * 3600, to: toS, by: 'model', tz: 'Asia/Kolkata', step: 'hour' },
      { from: toS - 399 * 3600, to: toS, by: 'token', tz: 'Asia/Kolkata', step: 'hour' },
      { from: toS - 90 * DAY_S, to: toS, by: 'token', tz: 'America/New_York', step: 'day' },
    ]
    const slow: string[] = []
    for (const { by, userId, ...query } of cases) {
      const period = periodOf(query, Date.now())
      const took = await timed(() => usageSeries({ store }, { period, filter: { user_id: userId }, by }))
      const title = `${period.starts.length} × ${query.step} by ${by}, ${query.tz}${userId === undefined ? '' : ', one user'}`
      console.log(`${engine.name}: ${title}: ${Math.round(took)} ms`)
      if (took > 2 * pass) slow.push(title)
    }
    expect(slow).toEqual([])
  })
})
