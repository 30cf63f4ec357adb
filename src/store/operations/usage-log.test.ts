import { declaredId } from '../../domain/channel-id.ts'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ENGINES, rowsWithAccount } from '../../../test/stores/engines.ts'
import { randomFrom } from '../../../test/fixtures/random.ts'
import {
  newToken,
  newUser,
  openedStore,
  temporaryFolder,
  USAGE_OF_ALL_COUNTS,
} from '../../../test/stores/rows.ts'
import { type Call, dayInsertion, filled, idAt } from '../../../test/stores/usage-log-rows.ts'
import { USAGE } from '../../domain/records/usage.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import type { RowStore } from '../store.ts'
import { createKysely } from '../sqlite/dialect.ts'
import * as reads from './reads.ts'
import type { UsageCursor, UsageScan } from './usage-log.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
/** Start of day 20,513, in Unix milliseconds. */
const T0 = Date.UTC(2026, 2, 1)

async function second(store: RowStore): Promise<void> {
  const user = await store.write('createUser', newUser({ username: 'ben' }))
  await store.write('createToken', newToken(user.id, { name: 'other', key: 'k2' }))
}

/**
 * Adds this number of users without calls, one by one, because hundreds at once would wait too long for a
 * connection.
 */
async function addOthers(store: RowStore, count: number): Promise<void> {
  for (let n = 0; n < count; n++) await store.write('createUser', newUser({ username: `other ${n}` }))
}

async function ids(store: RowStore, filter: UsageFilter): Promise<string[]> {
  const { entries, total } = await store.read('listUsage', { filter, offset: 0, limit: 100 })
  expect(total).toBe(entries.length)
  return entries.map(({ id }) => id)
}

describe.each(ENGINES)('the usage log on $name', (engine) => {
  test('the usage log returns the details of a settled call', async () => {
    const { store, database } = await rowsWithAccount(engine)
    expect(await store.read('hasCalls')).toBe(false)
    await filled(database, [
      { id: idAt(T0), endedMs: T0, note: 'cut_arguments' },
      { id: idAt(T0 + 1), endedMs: T0 + 1 },
    ])
    const { entries } = await store.read('listUsage', { filter: {}, offset: 0, limit: 10 })
    expect(entries.map(({ note }) => note)).toEqual(['', 'cut_arguments'])
    expect(await store.read('hasCalls')).toBe(true)
  })

  test('the usage log returns all fields of a row, with the names of a deleted user and token', async () => {
    const { store, database } = await rowsWithAccount(engine)
    await filled(database, [{ id: idAt(T0), endedMs: T0 + 1500, quota: 300 }])
    await database.sql('UPDATE users SET deleted_time = 5')
    await database.sql('UPDATE tokens SET deleted_time = 5')
    expect(await store.read('listUsage', { filter: {}, offset: 0, limit: 10 })).toEqual({
      total: 1,
      entries: [
        {
          ...USAGE.defaults,
          id: idAt(T0),
          ended_ms: T0 + 1500,
          user_id: 1,
          username: 'ada',
          token_id: 1,
          token_name: 'main',
          model: 'm',
          requested_model: 'asked',
          upstream_model: 'm-2026',
          channel: 'c',
          channel_id: declaredId('c'),
          group: 'default',
          usage: USAGE_OF_ALL_COUNTS,
          quota: 300,
          price_version: 'v1',
          duration_ms: 1500,
          first_byte_ms: 400,
          stream: true,
          reason: 'complete',
          kind: 'chat',
        },
      ],
    })
  })

  test('the usage log is sorted by the end of the calls, the latest first, page by page', async () => {
    const { store, database } = await rowsWithAccount(engine)
    // The first call to begin is the last to end.
    const long = { id: idAt(T0), endedMs: T0 + 3 * HOUR }
    const calls = [1, 2, 3].map((n) => ({ id: idAt(T0 + n * MINUTE), endedMs: T0 + n * MINUTE + 1 }))
    await filled(database, [long, ...calls])
    const newest = [long, ...calls.toReversed()].map(({ id }) => id)
    expect(await ids(store, {})).toEqual(newest)
    expect(await ids(store, { user_id: 1 })).toEqual(newest)
    const page = await store.read('listUsage', { filter: {}, offset: 1, limit: 2 })
    expect(page).toMatchObject({ total: 4, entries: newest.slice(1, 3).map((id) => ({ id })) })
    expect(await store.read('listUsage', { filter: {}, offset: 4, limit: 2 })).toEqual({
      total: 4,
      entries: [],
    })
  })

  test.each([1, 250])(
    'the usage log is sorted by the end of calls, however long they took: %i users',
    async (users) => {
      const { store, database } = await rowsWithAccount(engine)
      await addOthers(store, users - 1)
      const random = randomFrom(7)
      // Every third call takes up to an hour; three in ten end in the same millisecond as another one.
      const calls = Array.from({ length: 60 }, (_, index) => {
        const begin = T0 + index * MINUTE
        const took = index % 3 === 0 ? Math.floor(random() * 60) * MINUTE : Math.floor(random() * 3)
        return { id: idAt(begin), endedMs: begin + took, model: index % 4 === 0 ? 'n' : 'm' }
      })
      await filled(database, calls)
      const times = { fromMs: T0 + 20 * MINUTE, beforeMs: T0 + 50 * MINUTE }
      for (const filter of [{}, { model: 'n' }, times] as readonly UsageFilter[]) {
        const { model: wanted, fromMs = 0, beforeMs = Number.MAX_SAFE_INTEGER } = filter
        const meant = calls
          .filter(({ model }) => model === (wanted ?? model))
          .filter(({ endedMs }) => endedMs >= fromMs && endedMs < beforeMs)
          .toSorted((a, b) => b.endedMs - a.endedMs || (a.id < b.id ? 1 : -1))
        for (let offset = 0; offset <= meant.length; offset += 7) {
          const { total, entries } = await store.read('listUsage', { filter, offset, limit: 7 })
          expect(total).toBe(meant.length)
          expect(entries.map(({ id }) => id)).toEqual(meant.slice(offset, offset + 7).map(({ id }) => id))
        }
      }
    },
  )

  test('the usage log of a period without calls is empty, even if a call ended just before the period', async () => {
    const { store, database } = await rowsWithAccount(engine)
    await filled(database, [{ id: idAt(T0), endedMs: T0 + MINUTE }])
    expect(await ids(store, { fromMs: T0 + 2 * MINUTE })).toEqual([])
  })

  test('the usage log can be filtered by user, token, model, channel, group, id, time and other columns', async () => {
    const cases: readonly [string, UsageFilter, readonly string[]][] = [
      ['a user, by name', { username: 'ben' }, ['b']],
      ['a user, by id', { user_id: 1 }, ['e', 'd', 'c', 'a']],
      ['a name that nobody has', { username: 'nobody' }, []],
      ['a token', { token_name: 'other' }, ['b']],
      ["a token of another user's", { user_id: 1, token_name: 'other' }, []],
      ['a model', { model: 'n' }, ['c']],
      ['a channel', { channel: 'd' }, ['d']],
      ['a group', { group: 'vip' }, ['e']],
      ['an id', { id: 'a' }, ['a']],
      ['an id of somebody else', { user_id: 1, id: 'b' }, []],
      [
        'times, the first included and the last not',
        { fromMs: T0 + 2 * MINUTE, beforeMs: T0 + 4 * MINUTE },
        ['c', 'b'],
      ],
      ["times of a user's", { user_id: 1, fromMs: T0 + 2 * MINUTE, beforeMs: T0 + 4 * MINUTE }, ['c']],
      ['two at once', { model: 'm', channel: 'd' }, ['d']],
      ['how a call ended', { reasons: ['failed'] }, ['c']],
      ['a session', { session: 'f'.repeat(16) }, ['d', 'b']],
      ["a session of a user's", { user_id: 1, session: 'f'.repeat(16) }, ['d']],
      ['times of a session', { session: 'f'.repeat(16), fromMs: T0, beforeMs: T0 + 4 * MINUTE }, ['b']],
      ['several sessions', { session: ['f'.repeat(16), 'e'.repeat(16)] }, ['e', 'd', 'b']],
      ['several ends', { reasons: ['failed', 'cut'], user_id: 1 }, ['d', 'c']],
    ]
    const { store, database } = await rowsWithAccount(engine)
    await second(store)
    const names = ['a', 'b', 'c', 'd', 'e']
    const idOf = (name: string): string => idAt(T0 + names.indexOf(name) * MINUTE, name)
    const at = (name: string): Call => ({ id: idOf(name), endedMs: T0 + (names.indexOf(name) + 1) * MINUTE })
    await filled(database, [
      at('a'),
      { ...at('b'), userId: 2, tokenId: 2, session: 'f'.repeat(16) },
      { ...at('c'), model: 'n', reason: 'failed' },
      { ...at('d'), channel: 'd', reason: 'cut', session: 'f'.repeat(16) },
      { ...at('e'), group: 'vip', session: 'e'.repeat(16) },
    ])
    for (const [by, filter, expected] of cases) {
      const asked = filter.id === undefined ? filter : { ...filter, id: idOf(String(filter.id)) }
      expect.soft(await ids(store, asked), by).toEqual(expected.map(idOf))
    }
  })

  test('calls are found and summed up by their ends, however long before they began', async () => {
    const { store, database } = await rowsWithAccount(engine)
    const [line, answer, plain] = [idAt(T0 - 26 * HOUR), idAt(T0 - 10 * HOUR), idAt(T0)]
    await filled(database, [
      { id: line, endedMs: T0 + 2 * MINUTE, quota: 5 },
      { id: answer, endedMs: T0 + 3 * MINUTE, quota: 6 },
      { id: plain, endedMs: T0 + MINUTE, quota: 7 },
      { id: idAt(T0 - HOUR), endedMs: T0 - 1 },
    ])
    for (const filter of [{ fromMs: T0 }, { fromMs: T0, beforeMs: T0 + HOUR, model: 'm' }]) {
      expect(await ids(store, filter)).toEqual([answer, line, plain])
      const walked: string[] = []
      let quota = 0
      let after: UsageCursor | null = null
      do {
        const scan: UsageScan = { filter, after, maxRows: 1 }
        walked.push(...(await store.read('scanUsage', scan)).entries.map(({ id }) => id))
        const summed = await store.read('sumUsageScan', scan)
        quota += summed.totals.quota
        after = summed.next
      } while (after)
      expect(walked).toEqual([answer, line, plain])
      expect(quota).toBe(18)
    }
  })

  test('the calls for the lines of a batch are found by its id, however late they ended, and summed up', async () => {
    const { store, database } = await rowsWithAccount(engine)
    const [batch, other] = [T0, T0 + 1].map(
      (ms) => `batch_${ms.toString(16).padStart(12, '0')}70008000000000000000`,
    ) as [string, string]
    const [early, late, plain, later] = [idAt(T0, '1'), idAt(T0, '2'), idAt(T0, '3'), idAt(T0 + 1)]
    await filled(database, [
      { id: early, endedMs: T0 + MINUTE, batch, quota: 5, batchSaved: 4 },
      { id: late, endedMs: T0 + 20 * HOUR, batch, quota: 6 },
      { id: plain, endedMs: T0 + 2 * MINUTE },
      { id: later, endedMs: T0 + 3 * MINUTE, batch: other },
    ])
    expect(await ids(store, { batch })).toEqual([late, early])
    expect(await ids(store, { batch, user_id: 1 })).toEqual([late, early])
    expect(await ids(store, { batch: [batch, other, 'batch_none'] })).toEqual([late, later, early])
    expect(await ids(store, { batch, fromMs: T0 + 19 * HOUR })).toEqual([late])
    expect(await ids(store, { batch: 'batch_none' })).toEqual([])
    const sums = await store.read('batchSums', { ids: [batch, other, 'batch_none'] })
    expect(sums).toEqual([
      { batch, quota: 11, saved: 4 },
      { batch: other, quota: 1, saved: 0 },
    ])
  })

  test('the usage log can be filtered by the reason why calls missed the prompt cache', async () => {
    const { store, database } = await rowsWithAccount(engine)
    const [key, tools] = [idAt(T0 + 1), idAt(T0 + 2)]
    await filled(database, [
      { id: idAt(T0), endedMs: T0, session: 's' },
      { id: key, endedMs: T0 + 1, session: 's', cacheBreak: 'key_moved' },
      { id: tools, endedMs: T0 + 2, session: 's', cacheBreak: 'tools_changed' },
    ])
    expect(await ids(store, { cache_break: 'key_moved' })).toEqual([key])
    expect(await ids(store, { cache_break: ['tools_changed', 'key_moved'], session: 's' })).toEqual([
      tools,
      key,
    ])
    expect(await ids(store, { cache_break: 'provider' })).toEqual([])
  })

  test('several successive scans of the usage log read each row once', async () => {
    const { store, database } = await rowsWithAccount(engine)
    // Three calls end in each millisecond.
    const calls = Array.from({ length: 60 }, (_, index) => ({
      id: idAt(T0 - 1000 + index),
      endedMs: T0 + Math.floor(index / 3),
      model: index % 10 === 0 ? 'n' : 'm',
    }))
    await filled(database, calls)
    for (const filter of [
      {},
      { user_id: 1 },
      { fromMs: T0 + 1, beforeMs: T0 + 19 },
      { model: 'n' },
    ] as readonly UsageFilter[]) {
      const walked: string[] = []
      let after: UsageCursor | null = null
      let reads = 0
      do {
        const page: { entries: readonly { id: string }[]; next: UsageCursor | null } = await store.read(
          'scanUsage',
          {
            filter,
            after,
            maxRows: 7,
          },
        )
        expect(page.entries.length).toBeLessThanOrEqual(7)
        walked.push(...page.entries.map(({ id }) => id))
        after = page.next
        reads += 1
      } while (after)
      expect(reads).toBeLessThanOrEqual(10)
      const meant = calls.filter(
        ({ endedMs, model }) =>
          endedMs >= (filter.fromMs ?? 0) &&
          endedMs < (filter.beforeMs ?? Number.MAX_SAFE_INTEGER) &&
          model === (filter.model ?? model),
      )
      expect(walked).toEqual(meant.map(({ id }) => id).toReversed())
    }
  })

  test('the usage log can be summed up in several steps, and failed calls are not counted as requests', async () => {
    const { store, database } = await rowsWithAccount(engine)
    await filled(database, [
      { id: idAt(T0), endedMs: T0 + 1, quota: 5 },
      { id: idAt(T0 + 1), endedMs: T0 + 2, quota: 7 },
      { id: idAt(T0 + 2), endedMs: T0 + 3, quota: 0, reason: 'failed' },
    ])
    const first = await store.read('sumUsageScan', { filter: {}, after: null, maxRows: 2 })
    expect(first).toMatchObject({ totals: { requests: 1, quota: 7, usage: { input: 2 } } })
    const rest = await store.read('sumUsageScan', { filter: {}, after: first.next, maxRows: 2 })
    expect(rest).toEqual({
      totals: {
        requests: 1,
        quota: 5,
        usage: USAGE_OF_ALL_COUNTS,
      },
      next: null,
    })
    const nobody = await store.read('sumUsageScan', {
      filter: { username: 'nobody' },
      after: null,
      maxRows: 2,
    })
    expect(nobody).toMatchObject({ totals: { requests: 0, quota: 0 }, next: null })
  })

  test('sums of whole days of usage can be filtered by user, token, model, channel or group, and listed by model', async () => {
    const { store, database } = await rowsWithAccount(engine)
    await second(store)
    await database.sql(dayInsertion(10, { requests: 2, quota: 20 }))
    await database.sql(dayInsertion(10, { requests: 3, quota: 30, userId: 2 }))
    await database.sql(dayInsertion(11, { requests: 4, quota: 40, model: 'n' }))
    await database.sql(dayInsertion(12, { requests: 5, quota: 50 }))
    const sum = async (filter: UsageFilter, days = {}) => {
      const { requests, quota } = await store.read('sumUsageDays', { filter, days })
      return [requests, quota]
    }
    expect(await sum({})).toEqual([14, 140])
    expect(await sum({}, { first: 10, last: 11 })).toEqual([9, 90])
    expect(await sum({ user_id: 1 }, { last: 10 })).toEqual([2, 20])
    expect(await sum({ username: 'ben' })).toEqual([3, 30])
    expect(await sum({ username: 'nobody' })).toEqual([0, 0])
    expect(await sum({ model: 'n' })).toEqual([4, 40])
    expect(await sum({ token_name: 'other' })).toEqual([3, 30])
    expect(await sum({ channel: 'x' })).toEqual([0, 0])
    expect(await sum({ group: 'default' }, { first: 12 })).toEqual([5, 50])
    const days = await store.read('usageByDay', { filter: {}, days: { first: 10, last: 11 } })
    expect(days).toMatchObject([
      { day: 10, model: 'm', requests: 5, quota: 50, usage: { input: 2, webSearches: 14 } },
      { day: 11, model: 'n', requests: 4, quota: 40 },
    ])
    expect(await store.read('usageByDay', { filter: { username: 'nobody' }, days: {} })).toEqual([])
  })
})

test.each([1, 250])(
  'a list of the usage log has the newest 100,000 rows, with %i users in the database',
  async (users) => {
    const path = join(temporaryFolder(), 'sluice.db')
    const store = await openedStore(path)
    await addOthers(store, users)
    await store.write('createToken', newToken(1))
    const file = new DatabaseSync(path)
    const columns = file
      .prepare('SELECT * FROM usage_log')
      .columns()
      .map(({ name }) => name)
    const values: Readonly<Record<string, string>> = {
      id: `printf('%08x-0000-7000-8000-000000000000', n)`,
      ended_ms: '65536 * n',
      first_byte_ms: 'NULL',
    }
    file.exec(`WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100003)
    INSERT INTO usage_log SELECT ${columns.map((name) => values[name] ?? '1').join()} FROM numbers`)
    file.close()
    const list = (offset: number) => store.read('listUsage', { filter: { fromMs: 1 }, offset, limit: 5 })
    const first = await list(0)
    expect([first.total, first.entries[0]?.ended_ms]).toEqual([100_000, 65_536 * 100_003])
    const last = await list(99_998)
    expect(last.entries.map(({ ended_ms: endedMs }) => endedMs / 65_536)).toEqual([5, 4])
    expect((await list(100_000)).entries).toEqual([])
  },
)

describe('queries of the usage log on SQLite', () => {
  const BATCH = `batch_${(T0 - HOUR).toString(16).padStart(12, '0')}70008000000000000000`
  const scan = (filter: UsageFilter) => ({ filter, after: { id: idAt(T0), ended_ms: T0 }, maxRows: 100 })

  test.each<[string, UsageFilter, RegExp]>([
    ['a user', { user_id: 1 }, /usage_log USING (COVERING )?INDEX usage_log_by_user/],
    [
      'a user and a time',
      { user_id: 1, fromMs: T0 - DAY, beforeMs: T0 },
      /usage_log USING (COVERING )?INDEX usage_log_by_user/,
    ],
    [
      'a time',
      { fromMs: T0 - DAY, beforeMs: T0 },
      /SEARCH usage_log USING (COVERING )?INDEX usage_log_by_end \(ended_ms>\? AND ended_ms<\?\)/,
    ],
    [
      'several users, a model and a time',
      { user_id: [1, 2], model: 'm', fromMs: T0 - DAY, beforeMs: T0 },
      /SEARCH usage_log USING (COVERING )?INDEX usage_log_by_end \(ended_ms>\? AND ended_ms<\?\)/,
    ],
    ['a batch', { batch: BATCH }, /SEARCH usage_log USING PRIMARY KEY \(id>\? AND id<\?\)/],
    [
      'a batch and a time',
      { batch: BATCH, fromMs: T0 - DAY, beforeMs: T0 },
      /SEARCH usage_log USING PRIMARY KEY \(id>\? AND id<\?\)/,
    ],
    [
      'a session',
      { session: 'f', user_id: 1 },
      /usage_log USING (COVERING )?INDEX usage_log_by_session \(session=\?/,
    ],
    [
      'a session and a time',
      { session: 'f', fromMs: T0 - DAY, beforeMs: T0 },
      /usage_log USING (COVERING )?INDEX usage_log_by_session \(session=\? AND ended_ms/,
    ],
    ['an id', { id: 'x' }, /SEARCH usage_log USING PRIMARY KEY \(id=\?\)/],
  ])('a query of the usage log by %s uses a database index', async (_, filter, index) => {
    const path = join(temporaryFolder(), 'sluice.db')
    const store = await openedStore(path)
    await addOthers(store, 1)
    await store.write('createToken', newToken(1))
    const file = new DatabaseSync(path)
    const listed = ['x', idAt(T0 - HOUR)].map((id) => ({
      id,
      endedMs: T0 - HOUR,
      session: 'f',
      batch: BATCH,
    }))
    await filled({ sql: (text) => Promise.resolve(file.prepare(text).all()) }, listed)
    const asked: { sql: string; parameters: readonly unknown[] }[] = []
    const db = createKysely(file, ({ query }) => {
      asked.push({ sql: query.sql, parameters: query.parameters })
    })
    await reads.listUsage(db, { filter, offset: 0, limit: 10 })
    await reads.scanUsage(db, scan(filter))
    await reads.sumUsageScan(db, scan(filter))
    const ofLog = asked.filter(({ sql }) => sql.includes('"usage_log"'))
    expect(ofLog.length).toBeGreaterThanOrEqual(7)
    const isOfPage = (sql: string): boolean => sql.includes('"usage_log"."id" in (')
    expect(ofLog.filter(({ sql }) => isOfPage(sql))).toHaveLength(1)
    for (const { sql, parameters } of ofLog) {
      const plan = file
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all(...(parameters as string[]))
        .map(({ detail }) => detail as string)
      if (!isOfPage(sql)) expect(plan.join('\n')).toMatch(index)
      expect(plan.join('\n')).not.toMatch(/SCAN usage_log/)
      // The rows of a page are looked up one by one.
      if (isOfPage(sql)) expect(plan[0]).toMatch(/usage_log USING PRIMARY KEY \(id=\?\)/)
      // Of two bounds on the same side, SQLite uses one, and reads all rows up to the other.
      const bounded = filter.id === undefined && filter.batch === undefined ? 'ended_ms' : 'id'
      for (const side of ['<', '>=']) {
        for (const part of sql.split(/ from "usage_log"| limit \? offset \?/)) {
          expect(part.split(`"${bounded}" ${side} `).length, sql).toBeLessThanOrEqual(
            2 + Number(sql.includes(' or ')),
          )
        }
      }
    }
    file.close()
  })
})
