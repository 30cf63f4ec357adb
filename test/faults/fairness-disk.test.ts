import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type FullResponse, call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { SLOW_DISK } from '../fixtures/slow-disk.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { expectFairDuring } from './latency-under-attack.ts'

/** The number of calls and reads that one client keeps in flight. */
const MANY = 160

// Small batches for each commit and a long usage log need fewer calls for the same effect.
const copy = await patchedProgram([
  SLOW_DISK,
  {
    file: 'src/store/sqlite/group-commit.ts',
    text: 'maxOperations: 500,\n  maxPerUser: Number.POSITIVE_INFINITY',
    by: 'maxOperations: 8,\n  maxPerUser: Number.POSITIVE_INFINITY',
  },
  {
    file: 'src/store/operations/usage-log.ts',
    text: 'const listed = await listedRows(db, filter, offset + limit, order === undefined)',
    by: `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 40)
  const listed = await listedRows(db, filter, offset + limit, order === undefined)`,
  },
])
let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture(
    (upstream) => ({
      rate_limits: {},
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [
        ROOT,
        user(2, 'ann', [token('ann')], { access_token: 'access-token-of-ann' }),
        user(3, 'bob', [token('bob')], { access_token: 'access-token-of-bob' }),
      ],
    }),
    { root: copy.root },
  )
  fixture.upstream.script('m', { kind: 'whole' })
})
afterAll(async () => {
  await fixture?.close()
  copy.discard()
})

let attack = new AbortController()
let loops: Promise<void>[] = []
afterEach(async () => {
  attack.abort()
  await Promise.all(loops)
})
/** Keeps this number of requests in flight, each followed by the next; settles when they have begun. */
async function keepUp(count: number, request: () => Promise<FullResponse>): Promise<void> {
  const { signal } = (attack = new AbortController())
  let begun = 0
  const loop = async (): Promise<void> => {
    while (!signal.aborted) {
      begun += 1
      expect((await request()).status).toBe(200)
    }
  }
  loops = Array.from({ length: count }, loop)
  await expect.poll(() => begun).toBeGreaterThan(count)
}

function get(path: string, name: string, id: number): Promise<FullResponse> {
  const headers = { authorization: `access-token-of-${name}`, 'gateway-user': String(id) }
  return call(fixture.gateway.url, undefined, { method: 'GET', path, headers })
}

describe('one client', () => {
  test("a client with more queued writes than one commit takes delays no other client's call", async () => {
    const bob = (): Promise<FullResponse> => fixture.chat('bob', ask('m'))
    await expectFairDuring(() => keepUp(MANY, () => fixture.chat('ann', ask('m'))), bob)
    const { text } = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/metrics' })
    expect(Number(/^sluice_ledger_lag (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(16)
  })

  test("a client whose many calls have idempotency keys delays no other client's call", async () => {
    let calls = 0
    const ann = (): Promise<FullResponse> =>
      fixture.chat('ann', ask('m'), { headers: { 'idempotency-key': `call ${(calls += 1)}` } })
    await expectFairDuring(
      () => keepUp(MANY, ann),
      () => fixture.chat('bob', ask('m')),
    )
  })

  test('a client that reads a long usage log repeatedly delays no reads of other clients', async () => {
    await expectFairDuring(
      () => keepUp(MANY / 10, () => get('/api/log/self', 'ann', 2)),
      () => get('/api/user/self', 'bob', 3),
    )
  })
})
