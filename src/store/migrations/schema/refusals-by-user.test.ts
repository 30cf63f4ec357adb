import { Client } from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Engine, ENGINES, PATIENCE_MS, type TestDatabase } from '../../../../test/stores/engines.ts'

const SLOT = 980_000
const countOf = (userId: number) => ({
  slot: SLOT,
  code: 'rate_limited',
  token_id: userId,
  user_id: userId,
  calls: userId,
})

/** A database of a version before this step, with refused calls of two users. */
async function formerDatabase(engine: Engine): Promise<TestDatabase> {
  const database = await engine.prepared()
  const store = await database.open()
  await store.write('addRefusals', { counts: [countOf(1), countOf(2)] })
  await store.close()
  await database.sql('DROP INDEX usage_refusals_by_user')
  await database.sql("DELETE FROM kysely_migration WHERE name >= '0016'")
  return database
}

/** Upgrades the database, which has an index that finds the refused calls of a user then. */
async function upgraded(database: TestDatabase): Promise<void> {
  const store = await database.open()
  onTestFinished(() => store.close())
  const query = { filter: { user_id: 2 }, by: 'none', top: 1, first: SLOT, end: SLOT + 1 } as const
  expect(await store.read('refusedCalls', query)).toMatchObject({ all: [{ slot: SLOT, calls: 2 }] })
}

describe.each(ENGINES)('refused calls by user on $name', (engine) => {
  test('an upgrade indexes the refused calls of each user', async () => {
    const database = await formerDatabase(engine)
    await upgraded(database)
    const [found] = await database.sql(
      database.place.startsWith('postgres')
        ? "SELECT indexdef AS sql FROM pg_indexes WHERE indexname = 'usage_refusals_by_user'"
        : "SELECT sql FROM sqlite_schema WHERE name = 'usage_refusals_by_user'",
    )
    expect(found).toEqual({ sql: expect.stringContaining('(user_id, slot)') })
  })
})

describe.each(ENGINES.filter(({ name }) => name === 'PostgreSQL'))(
  'the index of refused calls by user on $name',
  (engine) => {
    const insertion = (userId: number) =>
      `INSERT INTO usage_refusals VALUES (${SLOT}, 'no_channel', ${userId}, ${userId}, 1)`

    async function connected(place: string, lockTimeoutMs = 0): Promise<Client> {
      const client = new Client({ connectionString: place, lock_timeout: lockTimeoutMs })
      await client.connect()
      onTestFinished(() => client.end())
      return client
    }

    test('while an upgrade builds it, nodes count refused calls', async () => {
      const database = await formerDatabase(engine)
      const [counting, another] = [await connected(database.place), await connected(database.place, 1)]
      await counting.query(`BEGIN; ${insertion(3)}`)
      const upgrading = upgraded(database)
      await vi.waitUntil(
        async () =>
          (
            await database.sql(
              "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
            )
          ).length === 1,
        { timeout: PATIENCE_MS },
      )
      await another.query(insertion(4))
      await counting.query('COMMIT')
      await upgrading
    })

    test('an upgrade builds it again if an earlier one was killed while it built it', async () => {
      const database = await formerDatabase(engine)
      const [writer, killed] = [await connected(database.place), await connected(database.place, 1)]
      await writer.query('BEGIN; LOCK TABLE usage_refusals IN ROW EXCLUSIVE MODE')
      const build = 'CREATE INDEX CONCURRENTLY usage_refusals_by_user ON usage_refusals (user_id, slot)'
      await expect(killed.query(build)).rejects.toThrow('lock timeout')
      await writer.query('COMMIT')
      await upgraded(database)
      expect(
        await database.sql(
          "SELECT indisvalid FROM pg_index WHERE indexrelid = 'usage_refusals_by_user'::regclass",
        ),
      ).toEqual([{ indisvalid: true }])
    })
  },
)
