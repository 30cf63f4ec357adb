import fc from 'fast-check'
import { Client } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Engine, ENGINES, rowsWithAccount, type TestDatabase } from '../../../test/stores/engines.ts'
import { SECRETS } from '../../../test/stores/rows.ts'
import { dayInsertion, filled, idAt } from '../../../test/stores/usage-log-rows.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import * as reads from '../operations/reads.ts'
import { createPostgresKysely } from './dialect.ts'
import {
  type DayRange,
  daysPerPartition,
  MAINTENANCE_LOCK,
  missingPartitionRanges,
} from './maintain-usage-log.ts'
import { openPostgresStore, type SharedRows } from './open.ts'
import { connectionPool } from './pool.ts'

const HERE = ENGINES.filter(({ name }) => name === 'PostgreSQL')
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
/** The start of today by the clock of this machine, which is also the server's. */
const TODAY = Math.floor(Date.now() / DAY) * DAY
const WRONG_CLOCK = Date.UTC(2040, 0, 1)

const nameOf = (ms: number): string =>
  `usage_log_${new Date(ms).toISOString().slice(0, 10).replaceAll('-', '')}`

/** A call of one minute that began at this time. */
const callAt = (ms: number) => ({ id: idAt(ms), endedMs: ms + MINUTE })

async function opened(engine: Engine): Promise<{ store: SharedRows; database: TestDatabase }> {
  const { database } = await rowsWithAccount(engine)
  return { store: await openedAgain(database), database }
}

async function openedAgain({ place: url }: TestDatabase): Promise<SharedRows> {
  const store = await openPostgresStore({ url, secrets: SECRETS })
  onTestFinished(() => store.close())
  return store
}

async function partitions({ sql }: TestDatabase): Promise<string[]> {
  const rows = await sql(
    "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'usage_log'::regclass ORDER BY 1",
  )
  return rows.map(({ name }) => name as string)
}

/** Lists the partition of each call. */
async function places({ sql }: TestDatabase): Promise<Record<string, string>> {
  const rows = await sql('SELECT tableoid::regclass::text AS name, id FROM usage_log')
  return Object.fromEntries(rows.map(({ id, name }) => [id as string, name as string]))
}

describe.each(HERE)('the usage log on $name', (engine) => {
  test('the usage log in PostgreSQL has partitions for the next days from the start, and the call id as primary key', async () => {
    const { database } = await opened(engine)
    const days = [-1, 0, 1, 2, 3].map((day) => nameOf(TODAY + day * DAY))
    expect(await partitions(database)).toEqual([...days, 'usage_log_default'])
    await filled(database, [callAt(TODAY)])
    expect(await places(database)).toEqual({ [idAt(TODAY)]: nameOf(TODAY) })
    await expect(filled(database, [callAt(TODAY)])).rejects.toThrow(/duplicate key/)
    const keys = await database.sql(
      "SELECT pg_get_constraintdef(oid) AS key FROM pg_constraint WHERE conrelid = 'usage_log'::regclass AND contype = 'p'",
    )
    expect(keys).toEqual([{ key: 'PRIMARY KEY (id)' }])
  })

  test('the usage log in PostgreSQL is pruned by dropping old partitions; later partitions and all usage sums stay', async () => {
    const { store, database } = await opened(engine)
    await database.sql(dayInsertion(1, { requests: 5, quota: 50 }))
    // A call may end a week after the time in its id, and is kept for ten days from then.
    const late = { id: idAt(TODAY - 16 * DAY - MINUTE), endedMs: TODAY - 9 * DAY - MINUTE }
    const others = [20, 18, 9, 1].map((days) => callAt(TODAY - days * DAY))
    await filled(database, [late, ...others])
    expect(await store.maintainUsageLog(30)).toMatchObject({ dropped: [], removed: 0, astray: 0 })
    const kept = await store.maintainUsageLog(10)
    expect(kept).toMatchObject({ made: [], removed: 0, astray: 0, gaveWay: false })
    expect(kept.dropped).toEqual([nameOf(TODAY - 20 * DAY), nameOf(TODAY - 18 * DAY)])
    const left = [late, ...others.slice(2)].map(({ id }) => id)
    expect(Object.keys(await places(database)).sort()).toEqual(left.sort())
    expect(await store.read('sumUsageDays', { filter: {}, days: {} })).toMatchObject({ quota: 50 })
    expect(await store.maintainUsageLog(10)).toMatchObject({ made: [], dropped: [] })
  })

  test('the usage log keeps calls whose id has the date of a wrong clock, and reports their number', async () => {
    const { store, database } = await opened(engine)
    const future = { id: idAt(WRONG_CLOCK), endedMs: TODAY }
    const past = { id: idAt(0), endedMs: TODAY }
    const strange = { id: 'no-id-of-ours', endedMs: TODAY }
    await filled(database, [future, past, strange])
    expect(await store.maintainUsageLog(90)).toMatchObject({ dropped: [], removed: 0, astray: 3 })
    const { entries } = await store.read('listUsage', { filter: {}, offset: 0, limit: 9 })
    expect(entries.map(({ id }) => id).sort()).toEqual([future.id, past.id, strange.id].sort())
    await database.sql(`UPDATE usage_log SET ended_ms = ${TODAY - 91 * DAY}`)
    expect(await store.maintainUsageLog(90)).toMatchObject({ dropped: [], removed: 3, astray: 0 })
  })

  test("several nodes can maintain the usage log's partitions at once, also after one was stopped during it", async () => {
    const { store, database } = await opened(engine)
    await filled(
      database,
      Array.from({ length: 12 }, (_, day) => callAt(TODAY - day * DAY)),
    )
    const others = [await openedAgain(database), await openedAgain(database)]
    const stopped = new AbortController()
    stopped.abort()
    expect(await store.maintainUsageLog(90, stopped.signal)).toMatchObject({ made: [], dropped: [] })
    const runs = await Promise.all([store, ...others].map((node) => node.maintainUsageLog(90)))
    const made = runs.flatMap((run) => run.made)
    expect(new Set(made).size).toBe(made.length)
    await store.maintainUsageLog(90)
    const found = await places(database)
    for (let day = 0; day < 12; day += 1) {
      expect(found[idAt(TODAY - day * DAY)]).toBe(nameOf(TODAY - day * DAY))
    }
  })

  test("the usage log's partitions are not maintained by two processes at the same time", async () => {
    const { store, database } = await opened(engine)
    await filled(database, [callAt(TODAY - 5 * DAY)])
    const other = new Client({ connectionString: database.place })
    onTestFinished(() => other.end())
    await other.connect()
    await other.query('select pg_advisory_lock($1)', [MAINTENANCE_LOCK])
    expect(await store.maintainUsageLog(90)).toMatchObject({ made: [], astray: 1, gaveWay: false })
    await other.query('select pg_advisory_unlock($1)', [MAINTENANCE_LOCK])
    expect(await store.maintainUsageLog(90)).toMatchObject({ made: [nameOf(TODAY - 5 * DAY)], astray: 0 })
  })

  test("maintenance of the usage log's partitions waits for a reader for at most a second, and then reports that it gave up", async () => {
    const { store, database } = await opened(engine)
    await filled(database, [callAt(TODAY - 20 * DAY)])
    await store.maintainUsageLog(30)
    const reader = new Client({ connectionString: database.place })
    onTestFinished(() => reader.end())
    await reader.connect()
    await reader.query('begin')
    await reader.query('select count(*) from usage_log')
    expect(await store.maintainUsageLog(10)).toMatchObject({ dropped: [], gaveWay: true })
    await reader.query('rollback')
    expect(await store.maintainUsageLog(10)).toMatchObject({
      dropped: [nameOf(TODAY - 20 * DAY)],
      gaveWay: false,
    })
  })

  test.each<[string, UsageFilter]>([
    ['a day', { fromMs: TODAY - 5 * DAY, beforeMs: TODAY - 4 * DAY }],
    ['an id', { id: idAt(TODAY - 5 * DAY) }],
  ])(
    'a read of the usage log by %s only reads the partitions that can contain the rows',
    async (_, filter) => {
      const { store, database } = await opened(engine)
      await filled(
        database,
        Array.from({ length: 20 }, (_, day) => callAt(TODAY - day * DAY)),
      )
      await store.maintainUsageLog(90)
      // A call that ended on a day may have begun a week before it.
      const may = [5, 6, 7, 8, 9, 10, 11, 12].map((days) => nameOf(TODAY - days * DAY))
      const plans = await plansOf(database, filter)
      expect(plans.length).toBeGreaterThanOrEqual(7)
      for (const { sql, tables } of plans) {
        expect(tables, sql).toContain(nameOf(TODAY - 5 * DAY))
        for (const table of tables) expect([...may, 'usage_log_default'], sql).toContain(table)
      }
    },
  )

  test("a read of a user's usage of a day reads only the partitions of that day and of the week before", async () => {
    const { store, database } = await opened(engine)
    await filled(
      database,
      Array.from({ length: 20 }, (_, day) => callAt(TODAY - day * DAY)),
    )
    await store.maintainUsageLog(90)
    const filter = { userId: 1, fromMs: TODAY - 5 * DAY, beforeMs: TODAY - 4 * DAY }
    for (const { sql, tables } of await plansOf(database, filter)) {
      expect(tables, sql).toContain(nameOf(TODAY - 5 * DAY))
      for (const later of [-4, -1, 0, 1]) expect(tables, sql).not.toContain(nameOf(TODAY + later * DAY))
      for (const earlier of [-13, -19]) expect(tables, sql).not.toContain(nameOf(TODAY + earlier * DAY))
    }
  })
})

/** Lists the tables in the query plan of every statement that reads the log. */
async function plansOf(
  { place }: TestDatabase,
  filter: UsageFilter,
): Promise<{ sql: string; tables: string[] }[]> {
  const asked: { sql: string; parameters: readonly unknown[] }[] = []
  const db = createPostgresKysely(
    connectionPool(place),
    ({ query }) => void asked.push({ sql: query.sql, parameters: query.parameters }),
  )
  onTestFinished(() => db.destroy())
  await reads.listUsage(db, { filter, offset: 0, limit: 10 })
  await reads.scanUsage(db, { filter, after: null, maxRows: 100 })
  await reads.sumUsageScan(db, { filter, after: null, maxRows: 100 })
  const client = new Client({ connectionString: place })
  await client.connect()
  const plans: { sql: string; tables: string[] }[] = []
  for (const { sql, parameters } of asked.filter((one) => one.sql.includes('"usage_log"'))) {
    const { rows } = await client.query<{ 'QUERY PLAN': unknown }>(`EXPLAIN (FORMAT JSON) ${sql}`, [
      ...parameters,
    ])
    const tables = [...JSON.stringify(rows[0]?.['QUERY PLAN']).matchAll(/"Relation Name":"(usage_log\w*)"/g)]
    plans.push({ sql, tables: tables.map(([, table = '']) => table) })
  }
  await client.end()
  return plans
}

test.each([
  [1, 1],
  [90, 1],
  [200, 1],
  [201, 2],
  [3650, 19],
  [100_000, 500],
])('a usage log whose rows are kept for %i days has partitions of %i days', (days, width) => {
  expect(daysPerPartition(days)).toBe(width)
})

test('missing partitions of the usage log are created around the existing ones', () => {
  const covered = [{ firstDay: 12, endDay: 13 }]
  expect(missingPartitionRanges(covered, { firstDay: 10, endDay: 15 }, 1)).toEqual([
    { firstDay: 10, endDay: 11 },
    { firstDay: 11, endDay: 12 },
    { firstDay: 13, endDay: 14 },
    { firstDay: 14, endDay: 15 },
  ])
  expect(missingPartitionRanges(covered, { firstDay: 10, endDay: 15 }, 7)).toEqual([
    { firstDay: 10, endDay: 12 },
    { firstDay: 13, endDay: 20 },
  ])
})

test('after missing partitions of the usage log are created, each day that needs a partition is in exactly one', () => {
  const gaps = fc.array(fc.tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 1, max: 9 })), {
    maxLength: 8,
  })
  fc.assert(
    fc.property(gaps, fc.nat(40), fc.nat(30), fc.integer({ min: 1, max: 20 }), (steps, from, days, width) => {
      let day = 0
      const covered: DayRange[] = steps.map(([gap, length]) => {
        const firstDay = day + gap
        day = firstDay + length
        return { firstDay, endDay: day }
      })
      const wanted = { firstDay: from, endDay: from + days }
      const made = missingPartitionRanges(covered, wanted, width)
      const all = [...covered, ...made]
      for (let one = 0; one < 120; one += 1) {
        const holders = all.filter(({ firstDay, endDay }) => firstDay <= one && one < endDay).length
        expect(holders).toBeLessThanOrEqual(1)
        if (one >= wanted.firstDay && one < wanted.endDay) expect(holders).toBe(1)
      }
      for (const { firstDay, endDay } of made) {
        expect(endDay - firstDay).toBeGreaterThan(0)
        expect(endDay - firstDay).toBeLessThanOrEqual(width)
      }
      expect(missingPartitionRanges(all, wanted, width)).toEqual([])
    }),
  )
})
