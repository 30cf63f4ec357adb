import { describe, expect, test } from 'vitest'
import { kindIs } from '../../../test/stores/usage-sums-rows.ts'
import { settleAll } from '../../../test/ledger/settled-calls.ts'
import { ENGINES, rowsWithAccount } from '../../../test/stores/engines.ts'
import { settledCall } from '../../../test/stores/rows.ts'
import { planTimeSeries } from '../../domain/series-plan.ts'
import { pruneExpired } from '../prune.ts'

const DAY_MS = 86_400_000
const T0 = Date.UTC(2026, 2, 1)
const DAY = T0 / DAY_MS
const WHO = { userId: 1, tokenId: 1 }

const sumOf = async (sql: (statement: string) => Promise<Record<string, unknown>[]>, name: string) =>
  (
    await sql(`SELECT cast(coalesce(sum(quota), 0) as bigint) AS quota FROM usage_sums WHERE ${kindIs(name)}`)
  )[0]?.['quota']

describe.each(ENGINES)('sums for series on $name', (engine) => {
  test('pruning deletes usage sums of half hours one day at a time, and keeps usage sums of days', async () => {
    const opened = await rowsWithAccount(engine)
    const { store, database } = opened
    const at = (days: number, id: string) => settledCall(WHO, id, { ended_ms: T0 + days * DAY_MS, quota: 10 })
    await settleAll(engine, opened, [at(0, 'a'), at(0.5, 'b'), at(1, 'c'), at(2.9, 'd')])
    expect(await store.read('usageSumsCoverage')).toEqual({ firstSlotDay: DAY, firstDay: DAY })
    await store.write('addRefusals', {
      counts: [{ slot: DAY * 48, code: 'rate_limited', user_id: 0, token_id: 0, calls: 3 }],
    })
    // Two rows of each kind of half hours, and a counter, belong to the first day, which has ended at that
    // time.
    expect(await pruneExpired(store, 'pruneHalfHourSums', T0 + 1.9 * DAY_MS)).toBe(5)
    for (const [name, quota] of [
      ['slots', 20],
      ['slot_routes', 20],
      ['days', 40],
      ['day_routes', 40],
      ['day_keys', 40],
    ] as const)
      expect(await sumOf(database.sql, name), name).toBe(quota)
    // Some half hours of the first remaining day may be deleted.
    const coverage = await store.read('usageSumsCoverage')
    expect(coverage).toEqual({ firstSlotDay: DAY + 2, firstDay: DAY })
    const period = {
      fromS: T0 / 1000 + 1800,
      toS: T0 / 1000 + 3 * 86_400,
      starts: [T0 / 1000 + 1800],
      step: 'month' as const,
    }
    expect(planTimeSeries(period, coverage)).toMatchObject({ isExact: false, days: [0, 0, 0], moved: [] })
  })
})
