import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newToken, newUser, openedStore, temporaryFolder } from '../../../test/stores/rows.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'

/** Milliseconds between two rows. */
const STEP_MS = 65_536
const ROWS = 150_000

test('the usage sums of a session cover all of its calls, however many calls of other sessions there are', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const store = await openedStore(path)
  const { id } = await store.write('createUser', newUser({ username: 'ann' }))
  await store.write('createToken', newToken(id))
  const file = new DatabaseSync(path)
  const columns = file
    .prepare('SELECT * FROM usage_log')
    .columns()
    .map(({ name }) => name)
  const values: Readonly<Record<string, string>> = {
    id: `printf('%08x-0000-7000-8000-000000000000', n)`,
    ended_ms: `${STEP_MS} * n`,
    session: `CASE WHEN n <= 10 THEN 'gone' WHEN n % 50000 = 0 THEN 'rare' ELSE 'busy' END`,
    cache_break: `CASE WHEN n % 1000 = 0 THEN 'provider' ELSE '' END`,
    cache_read_tokens: '7',
  }
  file.exec(`WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${ROWS})
    INSERT INTO usage_log SELECT ${columns.map((name) => values[name] ?? '1').join()} FROM numbers`)
  file.close()
  const sessions = async (filter: UsageFilter) =>
    store.read('usageSessions', { filter, offset: 0, limit: 20 })
  const rare = { session: 'rare', calls: 3, cached: 21, breaks: { provider: 3 }, first_ms: 50_000 * STEP_MS }
  const busy = {
    session: 'busy',
    calls: ROWS - 13,
    quota: ROWS - 13,
    cached: 7 * (ROWS - 13),
    breaks: { provider: ROWS / 1_000 - 3 },
    first_ms: 11 * STEP_MS,
    last_ms: (ROWS - 1) * STEP_MS,
  }
  // A session whose latest call is older than the newest 100,000 rows is not listed.
  expect(await sessions({})).toMatchObject({ total: 2, sessions: [rare, busy] })
  expect(await sessions({ user_id: 1 })).toMatchObject({ total: 2, sessions: [rare, busy] })
  expect(await sessions({ session: 'busy' })).toMatchObject({ total: 1, sessions: [busy] })
  // Only calls within the period count.
  expect(await sessions({ fromMs: 20_000 * STEP_MS, beforeMs: 140_000 * STEP_MS })).toMatchObject({
    total: 2,
    sessions: [
      { session: 'busy', calls: 120_000 - 2, first_ms: 20_000 * STEP_MS },
      { session: 'rare', calls: 2, last_ms: 100_000 * STEP_MS },
    ],
  })
})
