import { expect, test, describe } from 'vitest'
import type { CalendarStep } from '../../src/domain/calendar.ts'
import { bucketOf } from '../../src/domain/latency.ts'
import { seriesPeriodOf, usageSeries } from '../../src/management/usage/usage-series.ts'
import { SERIES_DIMENSIONS, type SeriesDimension } from '../../src/store/operations/usage-sum-queries.ts'
import {
  DIMENSION_COLUMNS,
  hasRouteColumns,
  HISTOGRAMS,
  smallestSumKind,
  NO_DIMENSION,
  SLOTS_PER_DAY,
  USAGE_SUMS_KEY,
  SUM_KINDS,
} from '../../src/store/sum-kinds.ts'
import { ENGINES, openedRows, type TestDatabase } from '../stores/engines.ts'
import { newToken, newUser } from '../stores/rows.ts'

const DAY_S = 86_400
const KEYS = 1000
const USERS = 200
const CALLS_PER_DAY = 27_400
const SLOT_DAYS = 100
const YEAR = 365
const TODAY = Math.floor(Date.now() / 1000 / DAY_S)
const RUNS = 3

/** Each key uses two models, and each model is at five channels. */
const ROUTE = `'model-' || ((token_id + n.i % 2) % 20), 'channel-' || (((token_id + n.i % 2) % 20 * 5 + n.i / 2 % 3 * 2) % 50), 'default', 'standard', ''`

/**
 * A year of 10 million calls by 1,000 keys over 20 models and 50 channels: half hours of the last 100 days,
 * with a row for each call, and all days.
 */
async function fillYear({ sql }: TestDatabase): Promise<void> {
  const counts = ['requests', 'quota', 'input_tokens', 'output_tokens']
  const histograms = [1500, 400].map((ms) => `'${bucketOf(ms)}:' || sum(requests) || ' '`)
  const perSlot = Math.floor(CALLS_PER_DAY / SLOTS_PER_DAY)
  const kindOf = (unit: 'slot' | 'day') => smallestSumKind(unit, DIMENSION_COLUMNS).kind
  await sql(`
    with recursive n(i) as (select 0 union all select i + 1 from n where i < ${perSlot * SLOTS_PER_DAY * SLOT_DAYS - 1}),
      calls as (select i, ${(TODAY - SLOT_DAYS) * SLOTS_PER_DAY} + i / ${perSlot} as slot, i % ${KEYS} * 79 % ${KEYS} + 1 as token_id from n)
    insert into usage_sums (${USAGE_SUMS_KEY.join(', ')}, ${counts.join(', ')})
    select ${kindOf('slot')}, slot, (token_id - 1) % ${USERS} + 1, token_id, ${ROUTE.replaceAll('n.i', 'i')}, 1, 1000 + i % 777, 900, 100 from calls`)
  await sql(`
    with recursive n(i) as (select 0 union all select i + 1 from n where i < 5), t(token_id) as (select 1 union all select token_id + 1 from t where token_id < ${KEYS}),
      d(day) as (select ${TODAY - YEAR} union all select day + 1 from d where day < ${TODAY - SLOT_DAYS - 1})
    insert into usage_sums (${USAGE_SUMS_KEY.join(', ')}, ${counts.join(', ')})
    select ${kindOf('day')}, day, (token_id - 1) % ${USERS} + 1, token_id, ${ROUTE}, 5, 7000, 4500, 500 from d, t, n`)
  const derived = SUM_KINDS.toSorted((one, other) => other.by.size - one.by.size)
  for (const { kind, unit, by } of derived) {
    if (kind === kindOf('slot')) continue
    const isDays = kind === kindOf('day')
    const start = isDays ? `start / ${SLOTS_PER_DAY}` : 'start'
    const dimensions = DIMENSION_COLUMNS.map((name) => (by.has(name) ? name : literal(NO_DIMENSION[name])))
    const groups = [start, ...DIMENSION_COLUMNS.filter((name) => by.has(name))]
    const texts = hasRouteColumns({ by }) ? histograms : ["''", "''"]
    await sql(`
      insert into usage_sums (${[...USAGE_SUMS_KEY, ...counts, ...HISTOGRAMS].join(', ')})
      select ${[kind, start, ...dimensions, ...counts.map((name) => `sum(${name})`), ...texts].join(', ')}
      from usage_sums where kind = ${isDays ? kindOf('slot') : kindOf(unit)} group by ${groups.join(', ')}`)
  }
}

const literal = (value: string | number): string => (typeof value === 'string' ? `'${value}'` : `${value}`)

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
  test('a usage series of a year with 10 million calls takes at most as long as two scans of the daily sums, by any dimension', async () => {
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
        `select start, model, sum(quota), sum(requests), sum(input_tokens), sum(output_tokens) from usage_sums where kind = ${smallestSumKind('day', DIMENSION_COLUMNS).kind} group by start, model`,
      ),
    )
    console.log(`${engine.name}: one pass over the daily sums: ${Math.round(pass)} ms`)
    const toS = TODAY * DAY_S
    const year = { from: (TODAY - YEAR) * DAY_S, to: toS }
    const cases: readonly Case[] = [
      ...SERIES_DIMENSIONS.map((by) => ({ ...year, by, tz: 'UTC', step: 'day' as const })),
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
      const period = seriesPeriodOf(query, Date.now())
      const took = await timed(() => usageSeries({ store }, { period, filter: { user_id: userId }, by }))
      const title = `${period.starts.length} × ${query.step} by ${by}, ${query.tz}${userId === undefined ? '' : ', one user'}`
      console.log(`${engine.name}: ${title}: ${Math.round(took)} ms`)
      if (took > 2 * pass) slow.push(title)
    }
    expect(slow).toEqual([])
  })
})
