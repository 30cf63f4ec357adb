import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openedStore, settledCall, storeWithAccount, temporaryFolder } from '../../../test/store-rows.ts'
import type { SettledCall } from '../ledger-writes.ts'
import { LATENCY_COLUMNS, POINT_COLUMNS, POINT_TABLES } from '../usage-points.ts'

const T0 = Date.UTC(2026, 2, 1)
const WHO = { userId: 1, tokenId: 1 }

type Rows = Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>

/** The rows of each table of sums. */
function sumsIn(path: string): Rows {
  const file = new DatabaseSync(path, { readOnly: true })
  try {
    return Object.fromEntries(
      POINT_TABLES.map(({ name, key }) => [
        name,
        file.prepare(`SELECT * FROM ${name} ORDER BY ${key.join(', ')}`).all(),
      ]),
    )
  } finally {
    file.close()
  }
}

/** The sums of a table over all of its rows. */
const totalOf = (rows: Rows[string] = []): Record<string, number> =>
  Object.fromEntries(
    [...POINT_COLUMNS, ...LATENCY_COLUMNS].map((column) => [
      column,
      rows.reduce((sum, row) => sum + (row[column] as number), 0),
    ]),
  )

/** The files as a crash at this moment leaves them, opened by the next start. */
async function afterCrash(path: string): Promise<string> {
  const copy = join(temporaryFolder(), 'sluice.db')
  for (const end of ['', '-wal']) cpSync(`${path}${end}`, `${copy}${end}`)
  const store = await openedStore(copy)
  await store.write('recover', { owner: 'next', nowMs: T0 })
  await store.close()
  return copy
}

const anyCall = fc.record({
  model: fc.constantFrom('m', 'n'),
  channel: fc.constantFrom('c', 'd'),
  endedMs: fc.integer({ min: T0, max: T0 + 3 * 86_400_000 }),
  quota: fc.nat({ max: 2 ** 40 }),
  durationMs: fc.nat({ max: 600_000 }),
  firstByteMs: fc.option(fc.nat({ max: 60_000 })),
  delivered: fc.boolean(),
  reason: fc.constantFrom<SettledCall['reason']>('complete', 'failed', 'crash', 'cut', 'client_gone'),
})

test('sums after a crash are those of the calls that were committed, to the unit', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(anyCall, { minLength: 1, maxLength: 4 }), { maxLength: 6 }),
      async (commits) => {
        const path = join(temporaryFolder(), 'sluice.db')
        const { store } = await storeWithAccount(path)
        let count = 0
        const settle = (of: Partial<SettledCall>) =>
          store.write('settle', settledCall(WHO, `id-${count++}`, of))
        // The first commit of a process writes its sums at once.
        await settle({ endedMs: T0 })
        for (const calls of commits) await Promise.all(calls.map(settle))
        const recovered = sumsIn(await afterCrash(path))
        await store.read('usageCoverage')
        const read = sumsIn(path)
        expect(recovered).toEqual(read)
        const all = [settledCall(WHO, '', { endedMs: T0 }), ...commits.flat()]
        for (const { name } of POINT_TABLES)
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

test('a transaction that is rolled back leaves the sums of the calls before it, once', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const { store } = await storeWithAccount(path)
  const file = new DatabaseSync(path)
  file.exec(`CREATE TRIGGER spoil BEFORE INSERT ON usage_log WHEN new.id = 'spoilt'
    BEGIN SELECT RAISE(ROLLBACK, 'disk I/O error'); END`)
  file.close()
  const settle = (id: string) => store.write('settle', settledCall(WHO, id, { endedMs: T0 }))
  await settle('a')
  await settle('b')
  await expect(Promise.all([settle('c'), settle('spoilt')])).rejects.toThrow()
  await settle('c')
  await settle('d')
  expect(sumsIn(await afterCrash(path))).toEqual(sumsIn(await afterCrash(path)))
  await store.read('usageCoverage')
  for (const { name } of POINT_TABLES)
    expect(totalOf(sumsIn(path)[name]), name).toMatchObject({ requests: 4, quota: 1200 })
})

test('a call that is removed from the log has been summed up before', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const { store } = await storeWithAccount(path)
  const settle = (id: string) => store.write('settle', settledCall(WHO, id, { endedMs: T0 }))
  await settle('a')
  await settle('b')
  expect(await store.write('prune', { beforeMs: T0 + 1, limit: 10 })).toMatchObject({ rows: 2 })
  const sums = sumsIn(await afterCrash(path))
  for (const { name } of POINT_TABLES) expect(totalOf(sums[name]), name).toMatchObject({ requests: 2 })
})

test('a store that is closed leaves nothing to be summed up', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const { store } = await storeWithAccount(path)
  for (const id of ['a', 'b']) await store.write('settle', settledCall(WHO, id, { endedMs: T0 }))
  await store.close()
  for (const { name } of POINT_TABLES)
    expect(totalOf(sumsIn(path)[name]), name).toMatchObject({ requests: 2 })
})
