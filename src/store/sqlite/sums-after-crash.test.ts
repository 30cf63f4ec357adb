import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import {
  newToken,
  newUser,
  openedStore,
  SECRETS,
  settledCall,
  storeWithAccount,
  temporaryFolder,
} from '../../../test/stores/rows.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import type { Store } from '../store.ts'
import { openForWriting } from './connection.ts'
import { SUM_UP_OPERATION } from './messages.ts'
import { prepareDatabase } from './prepare-database.ts'
import type { SumProgress } from './gathered-sums.ts'
import { WriteBatches } from './write-batch.ts'
import { SUM_COLUMNS, USAGE_SUMS_KEY, SUM_KINDS } from '../sum-kinds.ts'

const T0 = Date.UTC(2026, 2, 1)
const WHO = { userId: 1, tokenId: 1 }

type Rows = Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>

/** The rows of each kind of sums. */
function sumsIn(path: string): Rows {
  const file = new DatabaseSync(path, { readOnly: true })
  try {
    return Object.fromEntries(
      SUM_KINDS.map(({ kind, name }) => [
        name,
        file
          .prepare(`SELECT * FROM usage_sums WHERE kind = ${kind} ORDER BY ${USAGE_SUMS_KEY.join(', ')}`)
          .all(),
      ]),
    )
  } finally {
    file.close()
  }
}

/** The sums of a kind over all of its rows. */
const totalOf = (rows: Rows[string] = []): Record<string, number> =>
  Object.fromEntries(
    SUM_COLUMNS.map((column) => [column, rows.reduce((sum, row) => sum + (row[column] as number), 0)]),
  )

/** The files as a crash at this moment leaves them, opened by the next start. */
async function afterCrash(path: string): Promise<string> {
  const copy = join(temporaryFolder(), 'sluice.db')
  for (const end of ['', '-wal']) cpSync(`${path}${end}`, `${copy}${end}`)
  const store = await openedStore(copy)
  await store.read('usageSumsCoverage')
  await store.close()
  return copy
}

const anyCall = fc.record({
  model: fc.constantFrom('m', 'n'),
  channel: fc.constantFrom('c', 'd'),
  ended_ms: fc.integer({ min: T0, max: T0 + 3 * 86_400_000 }),
  quota: fc.nat({ max: 2 ** 40 }),
  duration_ms: fc.nat({ max: 600_000 }),
  first_byte_ms: fc.option(fc.nat({ max: 60_000 })),
  delivered: fc.boolean(),
  reason: fc.constantFrom<SettledCall['reason']>('complete', 'failed', 'crash', 'cut', 'client_gone'),
})

test('usage sums after a crash are exactly those of the committed calls', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(anyCall, { minLength: 1, maxLength: 4 }), { maxLength: 6 }),
      async (commits) => {
        const path = join(temporaryFolder(), 'sluice.db')
        const { store } = await storeWithAccount(path)
        let count = 0
        const settle = (of: Partial<SettledCall>) =>
          store.write('settle', settledCall(WHO, `id-${count++}`, of))
        await settle({ ended_ms: T0 })
        for (const calls of commits) await Promise.all(calls.map(settle))
        const recovered = sumsIn(await afterCrash(path))
        await store.read('usageSumsCoverage')
        const read = sumsIn(path)
        expect(recovered).toEqual(read)
        const all = [settledCall(WHO, '', { ended_ms: T0 }), ...commits.flat()]
        for (const { name } of SUM_KINDS)
          expect(totalOf(read[name]), name).toMatchObject({
            requests: all.filter(({ delivered }) => delivered).length,
            quota: all.reduce((sum, { quota }) => sum + quota, 0),
          })
        await store.close()
      },
    ),
    { numRuns: 10 },
  )
})

test('after a rolled-back transaction each committed call is in the usage sums exactly once', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const { store } = await storeWithAccount(path)
  const file = new DatabaseSync(path)
  file.exec(`CREATE TRIGGER spoil BEFORE INSERT ON usage_log WHEN new.id = 'spoilt'
    BEGIN SELECT RAISE(ROLLBACK, 'disk I/O error'); END`)
  file.close()
  const settle = (id: string) => store.write('settle', settledCall(WHO, id, { ended_ms: T0 }))
  await settle('a')
  await settle('b')
  await expect(Promise.all([settle('c'), settle('spoilt')])).rejects.toThrow()
  await settle('c')
  await settle('d')
  expect(sumsIn(await afterCrash(path))).toEqual(sumsIn(await afterCrash(path)))
  await store.read('usageSumsCoverage')
  for (const { name } of SUM_KINDS)
    expect(totalOf(sumsIn(path)[name]), name).toMatchObject({ requests: 4, quota: 1200 })
})

test('a call is pruned from the usage log only once it is in the usage sums, where it stays', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const { store } = await storeWithAccount(path)
  const settle = (id: string) => store.write('settle', settledCall(WHO, id, { ended_ms: T0 }))
  const prune = () => store.write('prune', { beforeMs: T0 + 1, limit: 10 })
  await Promise.all([settle('a'), settle('b')])
  expect(await prune()).toMatchObject({ rows: 0 })
  await store.read('usageSumsCoverage')
  expect(await prune()).toMatchObject({ rows: 2 })
  const sums = sumsIn(await afterCrash(path))
  for (const { name } of SUM_KINDS) expect(totalOf(sums[name]), name).toMatchObject({ requests: 2 })
})

const EVERY = { filter: {}, days: {} } as const

test.each<[string, (store: Store) => Promise<unknown>, unknown]>([
  ['the sum of days', (store) => store.read('sumUsageDays', EVERY), { requests: 1, quota: 300 }],
  ['usage by day', (store) => store.read('usageByDay', EVERY), [{ requests: 1, quota: 300 }]],
  ['usage by key', (store) => store.read('usageGroups', { by: 'key', days: {} }), [{ requests: 1 }]],
  [
    'the check of all sums',
    (store) => store.read('findUnbalancedAccounts'),
    { tokens: [], users: [], days: [] },
  ],
])('the read of %s includes a call that was settled just before it', async (_, read, expected) => {
  const { store } = await storeWithAccount(join(temporaryFolder(), 'sluice.db'))
  await store.write('settle', settledCall(WHO, 'a', { ended_ms: T0 }))
  expect(await read(store)).toMatchObject(expected as object)
  await store.close()
})

/** A writer with an account, without a thread and without sums in idle time. */
async function writerOf(path: string): Promise<{ db: DatabaseSync; batches: WriteBatches }> {
  const db = openForWriting(path)
  await prepareDatabase(db, SECRETS)
  const batches = new WriteBatches(db, SECRETS)
  await batches.write([
    ['createUser', newUser()],
    ['createToken', newToken(1)],
  ])
  return { db, batches }
}

const CALLS = 300

test('calls are added to the usage sums in small parts, and a crash after any part loses and doubles nothing', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const { db, batches } = await writerOf(path)
  // No two calls share a row.
  const calls = Array.from({ length: CALLS }, (_, i) => settledCall(WHO, `id-${i}`, { model: `m-${i}` }))
  await batches.write(calls.map((call) => ['settle', call]))
  const summed = () => totalOf(sumsIn(path)['slots'])['requests'] ?? 0
  const parts: number[] = []
  const afterCrashes: Rows[] = []
  let before = 0
  let progress: SumProgress
  do {
    const reply = await batches.write([[SUM_UP_OPERATION, undefined]])
    progress = (reply as { outcomes: readonly { value: SumProgress }[] }).outcomes[0]!.value
    parts.push(summed() - before)
    before = summed()
    afterCrashes.push(sumsIn(await afterCrash(path)))
    expect(batches.unsummed).toBe(progress.isBehind ? CALLS : 0)
  } while (progress.isBehind)
  expect(summed()).toBe(CALLS)
  expect(Math.max(...parts)).toBeLessThanOrEqual(100)
  expect(batches.unsummed).toBe(0)
  expect(parts.length).toBeGreaterThan(3)
  for (const sums of afterCrashes) expect(sums).toEqual(sumsIn(path))
  db.close()
})

test('a read of usage sums includes all calls that were settled before it', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const { store } = await storeWithAccount(path)
  await Promise.all(
    Array.from({ length: CALLS }, (_, i) =>
      store.write('settle', settledCall(WHO, `id-${i}`, { model: `m-${i}`, ended_ms: T0 })),
    ),
  )
  await Promise.all([
    store.read('usageSumsCoverage'),
    store.read('usageSumsCoverage'),
    store.read('usageSumsCoverage'),
  ])
  expect(sumsIn(path)['slots']).toHaveLength(CALLS)
  for (const { name } of SUM_KINDS)
    expect(totalOf(sumsIn(path)[name]), name).toMatchObject({ requests: CALLS, quota: 300 * CALLS })
})

test('calls are added to the usage sums even if nobody reads the sums', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const { store } = await storeWithAccount(path)
  await Promise.all(
    Array.from({ length: CALLS }, (_, i) =>
      store.write('settle', settledCall(WHO, `id-${i}`, { ended_ms: T0 })),
    ),
  )
  await vi.waitFor(() => expect(totalOf(sumsIn(path)['day_keys'])).toMatchObject({ requests: CALLS }), {
    timeout: 60_000,
  })
})

test('a failure to write usage sums makes reads of the sums fail, but no call', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const { store } = await storeWithAccount(path)
  const change = (sql: string): void => {
    const file = new DatabaseSync(path, { timeout: 5000 })
    file.exec(sql)
    file.close()
  }
  change("CREATE TRIGGER spoil BEFORE INSERT ON usage_sums BEGIN SELECT RAISE(ABORT, 'no'); END")
  const settle = (id: string) => store.write('settle', settledCall(WHO, id, { ended_ms: T0 }))
  const [read] = await Promise.allSettled([store.read('usageSumsCoverage'), settle('a'), settle('b')])
  expect(read).toMatchObject({ status: 'fulfilled' })
  const [failed, settled] = await Promise.allSettled([store.read('usageSumsCoverage'), settle('c')])
  expect(failed).toMatchObject({ status: 'rejected' })
  expect(settled).toMatchObject({ status: 'fulfilled' })
  change('DROP TRIGGER spoil')
  await store.read('usageSumsCoverage')
  for (const { name } of SUM_KINDS)
    expect(totalOf(sumsIn(path)[name]), name).toMatchObject({ requests: 3, quota: 900 })
})

test('closing a store adds all settled calls to the usage sums', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const { store } = await storeWithAccount(path)
  for (const id of ['a', 'b']) await store.write('settle', settledCall(WHO, id, { ended_ms: T0 }))
  await store.close()
  for (const { name } of SUM_KINDS) expect(totalOf(sumsIn(path)[name]), name).toMatchObject({ requests: 2 })
})
