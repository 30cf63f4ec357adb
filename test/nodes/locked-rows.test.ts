import { describe, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, retryWhileOverloaded } from '../fixtures/fixture.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { type LockedRow, lockRow } from '../stores/locked-row.ts'
import { byTier } from '../runner/tier.ts'
import { type Nodes, SHARED, setNodes } from './fixture.ts'

/** Ten prompt and five output tokens. */
const COST = 30
const QUOTA = 1_000_000
const ADMIN = { id: 1, accessToken: ROOT.access_token }
/** Keys of which none is known to a node before the lock. */
const COLD = ['bob', 'bob2', 'bob3']

/**
 * Repeats a request until it is served: on a busy machine the database may answer later than a request waits. One that
 * waits for the locked row is never served.
 */
async function untilServed(ask: () => Promise<{ readonly status: number }>): Promise<void> {
  await expect.poll(async () => (await ask()).status).toBe(200)
}

/** Expects that a request is served without the database, also by a gateway that is late. */
async function expectServed(ask: () => Promise<FullResponse>): Promise<void> {
  const { status, text } = await retryWhileOverloaded(ask)
  expect(status, text).toBe(200)
}

/** A program that takes its time to return leases when it stops. */
async function patientlyStopped(): Promise<string> {
  const limit = 'const CLOSE_TIMEOUT_MS = '
  const file = 'src/accounts/ledger/bank-client.ts'
  const copy = await patchedProgram([{ file, text: `${limit}2_000`, by: `${limit}60_000` }])
  onTestFinished(() => copy.discard())
  return copy.root
}

describe.each(SHARED)('while another session keeps the row of one account locked on $name', (engine) => {
  async function locked(
    count: number,
    select: string,
    program?: () => Promise<string>,
  ): Promise<Nodes & LockedRow> {
    const configure = (upstream: ScriptedUpstream): Configuration => ({
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [
        ROOT,
        user(2, 'ann', [
          token('ann', { remain_quota: QUOTA }),
          token('ann2', { remain_quota: QUOTA }),
          token('ann3'),
        ]),
        user(
          3,
          'bob',
          COLD.map((key) => token(key)),
        ),
      ],
    })
    const nodes = await setNodes(engine, count, configure, { program })
    nodes.upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    await untilServed(() => nodes.chat(0, 'ann', ask('m', { max_tokens: 100 })))
    await expect.poll(async () => (await nodes.token('token-ann')).used).toBe(COST)
    const row = await lockRow(nodes.database.place, select)
    onTestFinished(() => row.unlock())
    return { ...nodes, unlock: () => row.unlock() }
  }

  test.each(byTier(['users where id = 2'], ['users where id = 2', "tokens where name = 'token-ann'"]))(
    "while a user's database row is locked, others are served, and the user spends leased quota, which is charged later (%s)",
    async (place) => {
      const { chat, token, database, unlock } = await locked(1, `select 1 from ${place}`)
      const expires = async (): Promise<number> => {
        const [row] = await database.sql('select extract(epoch from max(expires))::float8 as at from nodes')
        return Number(row?.['at'])
      }
      const before = await expires()
      for (let round = 0; round < 4; round += 1) {
        await expectServed(() => chat(0, 'ann', ask('m', { max_tokens: 100 })))
        await untilServed(() => chat(0, 'bob', ask('m', { max_tokens: 100 })))
        await expect.poll(async () => (await token('token-bob')).used).toBe((round + 1) * COST)
      }
      for (const key of COLD) await untilServed(() => chat(0, key, ask('m', { max_tokens: 100 })))
      // Heartbeats are two seconds apart.
      await expect.poll(expires).toBeGreaterThan(before + 3)
      expect((await token('token-ann')).used).toBe(COST)
      await unlock()
      await expect.poll(async () => (await token('token-ann')).used).toBe(5 * COST)
      expect(await token('token-ann')).toMatchObject({ remain: QUOTA - 5 * COST })
    },
  )

  test('while the database row of an account is locked, unused keys that need more quota than is leased are refused with retry-after', async () => {
    const { chat, unlock } = await locked(1, 'select 1 from users where id = 2')
    const refused = await chat(0, 'ann2', ask('m', { max_tokens: 100 }))
    expect(refused.status).toBe(503)
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    // An unlimited key needs no quota but the user's, which the node has.
    await expectServed(() => chat(0, 'ann3', ask('m', { max_tokens: 100 })))
    await unlock()
    await untilServed(() => chat(0, 'ann2', ask('m', { max_tokens: 100 })))
  })

  test.each(
    byTier(["tokens where name = 'token-ann2'"], ['users where id = 2', "tokens where name = 'token-ann2'"]),
  )(
    'while a database row of an account is locked, its keys are read as they were last committed (%s)',
    async (place) => {
      const { gateways, unlock } = await locked(1, `select 1 from ${place}`)
      const url = gateways[0]?.url ?? ''
      const models = () => call(url, undefined, { key: 'ann2', method: 'GET', path: '/v1/models' })
      await untilServed(models)
      await unlock()
      await untilServed(models)
    },
  )

  test('while the database row of a user is locked, writes that wait for it keep no connection from other accounts', async () => {
    const { gateways } = await locked(1, 'select 1 from users where id = 2')
    const url = gateways[0]?.url ?? ''
    const change = () => manage(url, ADMIN, 'PUT /api/user/', { id: 2, username: 'ann', display_name: 'Ann' })
    // A busy machine may need longer for the other write than a write waits; so it has three tries, each beside six writes.
    const statuses: number[] = []
    while (statuses.length < 3 && !statuses.includes(200)) {
      // A node has five connections.
      const changes = Promise.all(Array.from({ length: 6 }, change))
      const other = await manage(url, ADMIN, 'PUT /api/user/', {
        id: 3,
        username: 'bob',
        display_name: 'Bob',
      })
      statuses.push(other.status)
      for (const { status, headers } of await changes) {
        expect(status).toBe(503)
        expect(Number(headers['retry-after'])).toBeGreaterThan(0)
      }
    }
    expect(statuses.at(-1)).toBe(200)
  })

  test('while the database row of a user is locked, a read of the usage log does not wait', async () => {
    const { chat, gateways, database } = await locked(1, 'select 1 from users where id = 2')
    const watching = async (): Promise<number> =>
      (
        await database.sql(
          "select from pg_stat_activity where datname = current_database() and state = 'active' and query like 'do %'",
        )
      ).length
    const readMs = async (): Promise<number> => {
      const startMs = performance.now()
      await manage(gateways[0]?.url ?? '', ADMIN, 'GET /api/log/?p=1')
      return performance.now() - startMs
    }
    const aloneMs = Math.max(await readMs(), await readMs(), await readMs())
    // A report waits for a locked row only 300 ms, so the server itself looks for it. Who waits for a row waits for a
    // transaction, which belongs to no database; the other locks of the process do.
    const waiting = database.sql(
      `do $$ begin
         while not exists (
           select from pg_locks as wanted join pg_locks as own using (pid) join pg_database on pg_database.oid = own.database
           where not wanted.granted and datname = current_database()
         ) loop perform pg_sleep(0.01); end loop;
       end $$`,
    )
    await expect.poll(watching).toBe(1)
    await chat(0, 'ann', ask('m', { max_tokens: 100 }))
    await waiting
    // Each read that waits for a locked row takes a second at least, far longer than one that does not. The machine may be
    // busier now than when the reads were alone.
    await expect.poll(readMs).toBeLessThan(Math.max(900, 2 * aloneMs))
  })

  test("while a user's database row is locked, a restarted node keeps the lease for its calls, and spends nothing twice", async () => {
    const { chat, token, gateways, database, unlock } = await locked(
      2,
      'select 1 from users where id = 2',
      patientlyStopped,
    )
    for (let index = 0; index < 5; index += 1)
      await expectServed(() => chat(0, 'ann', ask('m', { max_tokens: 100 })))
    await gateways[0]?.stop()
    await gateways[0]?.restart()
    await untilServed(() => chat(0, 'bob', ask('m', { max_tokens: 100 })))
    await unlock()
    await expect.poll(async () => (await token('token-ann')).used).toBe(6 * COST)
    await Promise.all(gateways.map((gateway) => gateway.stop()))
    const books =
      'select sum(quota)::bigint as quota, sum(used_quota)::bigint as used, sum(leased)::bigint as leased'
    expect(await database.sql(`${books} from users where id = 2`)).toMatchObject([
      { used: 6 * COST, leased: 0 },
    ])
    expect(await database.sql('select * from leases')).toEqual([])
  })
})
