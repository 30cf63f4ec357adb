import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { settledCall, storeWithAccount, temporaryFolder } from '../../test/stores/rows.ts'
import { pruneUsage } from './prune.ts'
import type { Store } from './store.ts'
import { kindIs } from '../../test/stores/usage-sums-rows.ts'

const DAY_MS = 86_400_000
const NOW_MS = Date.UTC(2026, 2, 31, 12)

/** Builds an id of a call, which sorts by time. */
const idAt = (ms: number): string => `${ms.toString(16).padStart(12, '0')}-7000`

async function storeWithCalls(
  endedDaysAgo: readonly number[],
): Promise<{ store: Store; path: string; tokenId: number }> {
  const path = join(temporaryFolder(), 'sluice.db')
  const { store, who, tokenId } = await storeWithAccount(path)
  await Promise.all(
    endedDaysAgo.map((days, index) => {
      const endedMs = NOW_MS - days * DAY_MS
      return store.write(
        'settle',
        settledCall(who, `${idAt(endedMs - 1000)}-${index}`, { ended_ms: endedMs, quota: 1 }),
      )
    }),
  )
  await store.read('usageSumsCoverage')
  return { store, path, tokenId }
}

function rowsIn(path: string): { readonly log: number; readonly oldestMs: number; readonly quota: number } {
  const file = new DatabaseSync(path, { readOnly: true })
  const row = file
    .prepare(
      `SELECT count(*) AS log, min(ended_ms) AS oldestMs, (SELECT sum(quota) FROM usage_sums WHERE ${kindIs('days')}) AS quota FROM usage_log`,
    )
    .get() as { log: number; oldestMs: number; quota: number }
  file.close()
  return { ...row }
}

test('rows of the usage log older than the configured days are deleted, and later rows and all usage sums stay', async () => {
  const { store, path, tokenId } = await storeWithCalls([200, 91, 90.001, 90, 89.999, 1, 0])
  expect(await pruneUsage(store, 90, NOW_MS)).toBe(3)
  expect(rowsIn(path)).toEqual({ log: 4, oldestMs: NOW_MS - 90 * DAY_MS, quota: 7 })
  expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [], users: [], days: [] })
  expect((await store.write('loadAccount', { tokenId }))?.token.used_quota).toBe(7)
  expect(await pruneUsage(store, 90, NOW_MS)).toBe(0)
})

test('pruning of the usage log keeps a call that ended after the limit, and removes shorter calls that began later', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const { store, who } = await storeWithAccount(path)
  await store.write('settle', settledCall(who, `${idAt(1)}-long`, { ended_ms: NOW_MS }))
  await store.write('settle', settledCall(who, `${idAt(2)}-short`, { ended_ms: NOW_MS - 2 * DAY_MS }))
  await store.read('usageSumsCoverage')
  expect(await pruneUsage(store, 1, NOW_MS)).toBe(1)
  expect(rowsIn(path)).toMatchObject({ log: 1, oldestMs: NOW_MS })
})

test('pruning reads a limited number of usage rows in one batch', async () => {
  const { store, path } = await storeWithCalls(Array.from({ length: 50 }, () => 100))
  expect((await store.write('prune', { beforeMs: NOW_MS, limit: 20 })).rows).toBe(20)
  expect(rowsIn(path).log).toBe(30)
})

test('an abort signal stops the pruning of the usage log between two batches', async () => {
  const { store, path } = await storeWithCalls(Array.from({ length: 400 }, () => 100))
  const stop = new AbortController()
  const pruning = pruneUsage(store, 90, NOW_MS, stop.signal)
  await delay(20)
  stop.abort()
  const removed = await pruning
  expect(removed).toBeGreaterThan(0)
  expect(removed).toBeLessThan(400)
  expect(rowsIn(path).log).toBe(400 - removed)
})

test('a large backlog of usage rows is pruned in batches that grow until each takes the database a millisecond', async () => {
  const { store, path } = await storeWithCalls(
    Array.from({ length: 12_000 }, (_, index) => 200 - index / 200),
  )
  const took: number[] = []
  const watched: Pick<Store, 'write'> = {
    async write(name, ...input) {
      const output = await store.write(name, ...input)
      const { rows } = output as { rows: number }
      // Simulates a machine that removes 200 rows in a millisecond.
      const tookMs = rows / 200
      took.push(tookMs)
      return { ...(output as object), tookMs } as typeof output
    },
  }
  expect(await pruneUsage(watched, 90, NOW_MS)).toBe(12_000)
  expect(rowsIn(path).log).toBe(0)
  // 200 rows at a time after the first hundred, but no more.
  expect(took.length).toBeLessThan(65)
  expect(Math.max(...took)).toBeLessThanOrEqual(1)
})
