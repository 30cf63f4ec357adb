import { describe, expect, test } from 'vitest'
import { withoutSeries } from '../../../test/former-schema.ts'
import { settleAll } from '../../../test/settled-calls.ts'
import { ENGINES, openedRows, rowsWithAccount } from '../../../test/store-engines.ts'
import { newToken, newUser, settledCall } from '../../../test/store-rows.ts'
import { filled, idAt } from '../../../test/usage-log-rows.ts'
import { planSeries } from '../../domain/series-plan.ts'
import { pruneExpired } from '../prune-expired.ts'

const DAY_MS = 86_400_000
const T0 = Date.UTC(2026, 2, 1)
const DAY = T0 / DAY_MS
const WHO = { userId: 1, tokenId: 1 }

const sumOf = async (sql: (statement: string) => Promise<Record<string, unknown>[]>, table: string) =>
  (await sql(`SELECT cast(coalesce(sum(quota), 0) as bigint) AS quota FROM ${table}`))[0]?.['quota']

describe.each(ENGINES)('sums for series on $name', (engine) => {
  test('of half hours go with their days, those of days stay, and what they can tell is known', async () => {
    const opened = await rowsWithAccount(engine)
    const { store, database } = opened
    const at = (days: number, id: string) => settledCall(WHO, id, { ended_ms: T0 + days * DAY_MS, quota: 10 })
    await settleAll(engine, opened, [at(0, 'a'), at(0.5, 'b'), at(1, 'c'), at(2.9, 'd')])
    expect(await store.read('usageCoverage')).toEqual({ firstSlotDay: DAY, firstDay: DAY })
    await store.write('addRefusals', {
      counts: [{ slot: DAY * 48, code: 'rate_limited', user_id: 0, token_id: 0, calls: 3 }],
    })
    // Two rows in each table of half hours, and a counter, are of the first day, which has ended by then.
    expect(await pruneExpired(store, 'pruneSlots', T0 + 1.9 * DAY_MS)).toBe(5)
    for (const [table, quota] of [
      ['usage_slots', 20],
      ['usage_slot_routes', 20],
      ['usage_day_routes', 40],
      ['usage_day_keys', 40],
    ])
      expect(await sumOf(database.sql, String(table)), String(table)).toBe(quota)
    // The first day that is left may have lost half hours.
    const coverage = await store.read('usageCoverage')
    expect(coverage).toEqual({ firstSlotDay: DAY + 2, firstDay: DAY })
    const period = {
      fromS: T0 / 1000 + 1800,
      toS: T0 / 1000 + 3 * 86_400,
      starts: [T0 / 1000 + 1800],
      step: 'month' as const,
    }
    expect(planSeries(period, coverage)).toMatchObject({ isExact: false, days: [0, 0, 0], moved: [] })
  })

  test('of a former version are made from its log and its daily sums', async () => {
    const { store, database } = await openedRows(engine)
    await store.write('createUser', newUser())
    await store.write('createToken', newToken(1))
    await store.close()
    const { sql } = database
    await withoutSeries(engine, database)
    await filled(
      database,
      [
        { id: idAt(T0, '1'), endedMs: T0 + 1000, quota: 5 },
        { id: idAt(T0, '2'), endedMs: T0 + DAY_MS, quota: 7 },
        { id: idAt(T0, '3'), endedMs: T0 + DAY_MS + 1_800_000, quota: 0, reason: 'failed' },
      ],
      'before details',
    )
    // The log has lost a row of its first day, and all of the day before.
    for (const [day, requests, quota] of [
      [DAY - 1, 3, 30],
      [DAY, 2, 9],
      [DAY + 1, 1, 7],
    ] as const)
      await sql(
        `INSERT INTO usage_days VALUES (${day}, 1, 1, 'm', 'c', 'default', ${requests}, 1, 2, 3, 4, 5, 6, 7, ${quota}, 8, 9, 10, 11, 12, 13, 14)`,
      )
    const again = await database.open()
    try {
      expect(await again.read('usageCoverage')).toEqual({ firstSlotDay: DAY + 2, firstDay: DAY - 1 })
      expect(await sumOf(sql, 'usage_slots')).toBe(7)
      expect(await sumOf(sql, 'usage_slot_routes')).toBe(7)
      for (const table of ['usage_day_routes', 'usage_day_keys'])
        expect(
          await sql(`SELECT day, requests, failed, quota, cache_write_tokens FROM ${table} ORDER BY day`),
        ).toEqual([
          { day: DAY - 1, requests: 3, failed: 0, quota: 30, cache_write_tokens: 7 },
          { day: DAY, requests: 2, failed: 0, quota: 9, cache_write_tokens: 7 },
          { day: DAY + 1, requests: 1, failed: 1, quota: 7, cache_write_tokens: 7 },
        ])
      expect(await sql('SELECT failed FROM usage_days ORDER BY day')).toEqual([
        { failed: 0 },
        { failed: 0 },
        { failed: 1 },
      ])
      // The call took 1500 ms, and 400 ms to the first byte.
      expect(await sql('SELECT slot, requests, total_6, first_4 FROM usage_slots ORDER BY slot')).toEqual([
        { slot: (DAY + 1) * 48, requests: 1, total_6: 1, first_4: 1 },
        { slot: (DAY + 1) * 48 + 1, requests: 0, total_6: 0, first_4: 0 },
      ])
    } finally {
      await again.close()
    }
  })
})
