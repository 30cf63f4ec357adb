import { Client } from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Engine, ENGINES, PATIENCE_MS, type TestDatabase } from '../../../../test/stores/engines.ts'
import { lockRow } from '../../../../test/stores/locked-row.ts'
import { newToken, newUser, SECRETS } from '../../../../test/stores/rows.ts'
import { filled, idAt } from '../../../../test/stores/usage-log-rows.ts'
import { openPostgresStore, type SharedRows } from '../../postgres/open.ts'

const DAY = 86_400_000
const TODAY = Math.floor(Date.now() / DAY) * DAY
const DAYS = [20, 19, 18]

const callOfDay = (day: number) => ({ id: idAt(TODAY - day * DAY), endedMs: TODAY - day * DAY })

async function opened(url: string, report?: (sentence: string) => void): Promise<SharedRows> {
  const store = await openPostgresStore({ url, secrets: SECRETS, timeoutMs: PATIENCE_MS, report })
  onTestFinished(() => store.close())
  return store
}

/** A database of a version before this step, with calls of some days, and a node that still runs. */
async function formerLog(engine: Engine): Promise<{ database: TestDatabase; node: SharedRows }> {
  const database = await engine.prepared()
  const node = await opened(database.place)
  const user = await node.write('createUser', newUser())
  await node.write('createToken', newToken(user.id))
  await filled(database, DAYS.map(callOfDay))
  await node.maintainUsageLog(90)
  await database.sql('DROP INDEX usage_log_by_end')
  await database.sql("DELETE FROM kysely_migration WHERE name >= '0015'")
  return { database, node }
}

/** The index by ends of each partition, if it has one: its name, whether it is valid, and that of the log which has it. */
function indexes({ sql }: TestDatabase): Promise<Readonly<Record<string, unknown>>[]> {
  return sql(`
    SELECT log.inhrelid::regclass::text AS partition, indexrelid AS index, indisvalid AS "isValid",
      attached.inhparent::regclass::text AS parent
    FROM pg_inherits AS log
    JOIN pg_attribute ON attrelid = log.inhrelid AND attname = 'ended_ms'
    LEFT JOIN pg_index ON indrelid = log.inhrelid AND indkey::text = attnum::text
    LEFT JOIN pg_inherits AS attached ON attached.inhrelid = indexrelid
    WHERE log.inhparent = 'usage_log'::regclass ORDER BY 1`)
}

/** Names of the partitions without an index by ends that calls can be read from. */
async function missing(database: TestDatabase): Promise<unknown[]> {
  return (await indexes(database)).filter(({ isValid }) => isValid !== true).map(({ partition }) => partition)
}

/** Each partition has one index that is valid and belongs to that of the log, which is valid, too. */
async function isComplete(database: TestDatabase): Promise<void> {
  const found = await indexes(database)
  expect(new Set(found.map(({ partition }) => partition)).size).toBe(found.length)
  for (const one of found) expect(one).toMatchObject({ isValid: true, parent: 'usage_log_by_end' })
  expect(
    await database.sql("SELECT indisvalid FROM pg_index WHERE indexrelid = 'usage_log_by_end'::regclass"),
  ).toEqual([{ indisvalid: true }])
}

describe.each(ENGINES.filter(({ name }) => name === 'PostgreSQL'))(
  'calls by their ends on $name',
  (engine) => {
    test('an upgrade indexes the partitions of the usage log while nodes report, and attaches what two nodes have built', async () => {
      const { database, node } = await formerLog(engine)
      const report = await lockRow(database.place, 'select 1 from users')
      const sentences: string[] = []
      const upgrades = [1, 2].map(() => opened(database.place, (sentence) => sentences.push(sentence)))
      // One waits for the report, the other for the first.
      await vi.waitUntil(
        async () =>
          (
            await database.sql(
              "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
            )
          ).length === upgrades.length,
        { timeout: PATIENCE_MS },
      )
      expect(await missing(database)).toEqual([])
      const built = await indexes(database)
      expect(sentences.filter((one) => one.includes('index'))).toEqual(
        built.map(
          ({ partition }, at) =>
            `building the index of ${String(partition)} by the ends of calls (${at + 1} of ${built.length})`,
        ),
      )
      // A node of the former version makes a partition as its tables are now.
      await filled(database, [callOfDay(25)])
      const { made } = await node.maintainUsageLog(90)
      expect(made).toEqual(await missing(database))
      await report.unlock()
      await Promise.all(upgrades)
      await isComplete(database)
      expect(await indexes(database)).toEqual(
        expect.arrayContaining(
          built.map(({ partition, index }) => expect.objectContaining({ partition, index })),
        ),
      )
    })

    test('an upgrade builds an index of a partition again that was killed while it was built', async () => {
      const { database } = await formerLog(engine)
      const [partition] = await missing(database)
      const writer = new Client({ connectionString: database.place })
      const killed = new Client({ connectionString: database.place, lock_timeout: 1 })
      for (const client of [writer, killed]) {
        await client.connect()
        onTestFinished(() => client.end())
      }
      await writer.query(`BEGIN; LOCK TABLE ${String(partition)} IN ROW EXCLUSIVE MODE`)
      await expect(
        killed.query(`CREATE INDEX CONCURRENTLY ON ${String(partition)} (ended_ms)`),
      ).rejects.toThrow('lock timeout')
      await writer.query('COMMIT')
      expect(await indexes(database)).toContainEqual(expect.objectContaining({ partition, isValid: false }))
      await opened(database.place)
      await isComplete(database)
    })
  },
)
