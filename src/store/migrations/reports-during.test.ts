import { Client } from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { BANKS, bankFixture } from '../../../test/bank-fixture.ts'
import { withoutSeries } from '../../../test/former-schema.ts'
import { settledCall } from '../../../test/store-rows.ts'
import { outboxRow } from '../outbox-row.ts'
import { POINT_TABLES } from '../usage-points.ts'
import { CHARGE } from './bank/charge.ts'
import { statementsOf } from './bank/bank-function.ts'
import { pointSums } from './bank/point-sums.ts'

/** The statement that creates the function for charges as it was before sums for series and search units. */
function formerCharge(): string {
  const [charge] = CHARGE
  if (!charge) throw new Error('there is no function for charges')
  const body = charge.body
    .replace(`${pointSums('fresh')}, `, '')
    .replace(/,\s+coalesce\((?:sum\()?search_units\)?, 0\)/g, '')
    .replace(/,\s+search_units = [^\n,]+/, '')
    .replaceAll(/, search_units(?: bigint)?/g, '')
    .replace(/, attempts text,\s+particulars text/, '')
    .replace(', price_incomplete bigint, note text', '')
    .replace(", coalesce(price_incomplete, 0), coalesce(note, '')", '')
    .replaceAll(', price_incomplete, note', '')
    .replaceAll(', attempts, particulars', '')
    .replace(/,\s+count\(\*\) filter \(where reason in [^\n]+/, '')
    .replace(/,\s+failed = d\.failed \+ excluded\.failed/, '')
    .replace('images, failed)', 'images)')
  return statementsOf({ ...charge, body }, 'public')[0] ?? ''
}

describe.each(BANKS)('a migration on $name', (engine) => {
  test('has the report of a node that comes meanwhile in all sums', async () => {
    const { store, database, node } = await bankFixture(engine)
    const who = { tokenId: 1, userId: 1 }
    await store.close()
    await withoutSeries(engine, database)
    await database.sql(formerCharge())
    await node('a').apply([outboxRow(settledCall(who, 'before', { quota: 3 }))], [])
    const holder = new Client({ connectionString: database.place })
    await holder.connect()
    onTestFinished(() => holder.end())
    const waiting = (count: number): Promise<unknown> =>
      vi.waitUntil(
        async () => {
          const rows = await database.sql(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
          )
          return rows.length === count
        },
        { timeout: 60_000 },
      )
    // The migration has run all of its steps when it notes them.
    await holder.query(
      'BEGIN; SELECT 1 FROM kysely_migration LIMIT 1; LOCK TABLE kysely_migration IN SHARE MODE',
    )
    const migrated = database.open()
    await waiting(1)
    const reported = node('b').apply([outboxRow(settledCall(who, 'during', { quota: 4 }))], [])
    await waiting(2)
    await holder.query('COMMIT')
    const again = await migrated
    await reported
    for (const { name } of [...POINT_TABLES, { name: 'usage_days' }, { name: 'usage_log' }])
      expect(await database.sql(`SELECT cast(sum(quota) as bigint) AS quota FROM ${name}`), name).toEqual([
        { quota: 7 },
      ])
    await again.close()
  })
})
