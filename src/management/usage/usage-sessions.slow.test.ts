import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newToken, newUser, openedStore, temporaryFolder } from '../../../test/stores/rows.ts'
import { Role } from '../../domain/role.ts'
import type { Store } from '../../store/store.ts'
import { usageSessions, usageSessionsQuery } from './usage-sessions.ts'

/** Milliseconds between two rows: 2^16, of which ids of calls are whole multiples. */
const STEP_MS = 65_536
const ROWS = 150_000

/** A store whose row `n` ended after `n` steps: calls of two models, and of the sessions `gone`, `rare` and `busy`. */
async function filledStore(): Promise<{ readonly store: Store; readonly userId: number }> {
  const path = join(temporaryFolder(), 'sluice.db')
  const store = await openedStore(path)
  const { id: userId } = await store.write('createUser', newUser({ username: 'ann' }))
  await store.write('createToken', newToken(userId))
  const file = new DatabaseSync(path)
  const columns = file
    .prepare('SELECT * FROM usage_log')
    .columns()
    .map(({ name }) => name)
  const values: Readonly<Record<string, string>> = {
    id: `printf('%08x-0000-7000-8000-000000000000', n)`,
    ended_ms: `${STEP_MS} * n`,
    model: `CASE WHEN n < 20 THEN 'm' ELSE 'n' END`,
    session: `CASE WHEN n <= 10 THEN 'gone' WHEN n % 50000 = 0 THEN 'rare' ELSE 'busy' END`,
    cache_break: `CASE WHEN n % 1000 = 0 THEN 'provider' ELSE '' END`,
    cache_read_tokens: '7',
  }
  file.exec(`WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${ROWS})
    INSERT INTO usage_log SELECT ${columns.map((name) => values[name] ?? '1').join()} FROM numbers`)
  file.close()
  return { store, userId }
}

const secondsAt = (n: number): number => Math.floor((n * STEP_MS) / 1000)
const firstCall = (n: number): string => `${n.toString(16).padStart(8, '0')}-0000-7000-8000-000000000000`

test('the usage sums of a session cover all of its calls, however many calls of other sessions there are', async () => {
  const { store, userId } = await filledStore()
  const sessions = (query: object, role: Role = Role.admin) =>
    usageSessions({ store }, usageSessionsQuery.parse(query), { id: userId, role })
  const rare = {
    session: 'rare',
    username: 'ann',
    first_call: firstCall(50_000),
    models: 1,
    calls: 3,
    cached: 21,
    breaks: { provider: 3 },
    first_at: secondsAt(50_000),
    last_at: secondsAt(150_000),
  }
  const busy = {
    session: 'busy',
    first_call: firstCall(11),
    models: 2,
    calls: ROWS - 13,
    quota: ROWS - 13,
    cached: 7 * (ROWS - 13),
    breaks: { provider: ROWS / 1_000 - 3 },
    first_at: secondsAt(11),
    last_at: secondsAt(ROWS - 1),
  }
  // A session whose latest call is older than the newest 100,000 rows is not listed.
  expect(await sessions({})).toMatchObject({ total: 2, items: [rare, busy] })
  expect(await sessions({}, Role.user)).toMatchObject({ total: 2, items: [rare, busy] })
  expect(await sessions({ session: 'busy' })).toMatchObject({ total: 1, items: [busy] })
  // Only calls within the period count. Its last second is included.
  const period = { start_timestamp: String(secondsAt(20_000)), end_timestamp: String(secondsAt(140_000) - 1) }
  expect(await sessions(period)).toMatchObject({
    total: 2,
    items: [
      { session: 'busy', calls: 120_000 - 2, first_at: secondsAt(20_000) },
      { session: 'rare', calls: 2, last_at: secondsAt(100_000) },
    ],
  })
})

test('while the calls of a large session are summed up, other reads of the store come in between', async () => {
  const { store, userId } = await filledStore()
  const state = { isOver: false }
  let others = 0
  const summing = usageSessions({ store }, usageSessionsQuery.parse({ session: 'busy' }), {
    id: userId,
    role: Role.user,
  }).finally(() => (state.isOver = true))
  for (; !state.isOver; others += 1) await store.read('managedUser', { userId })
  await summing
  // The session has 149,987 calls, of which 20,000 are read at a time.
  expect(others).toBeGreaterThanOrEqual(8)
})
