import { setImmediate } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type FullResponse, call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { SLOW_DISK } from '../fixtures/slow-disk.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { byTier } from '../runner/tier.ts'

/** The number of calls that one client keeps in flight, and of reads. */
const MANY = 160
const MANY_READS = 32
/** The number of requests that another client makes meanwhile. */
const REQUESTS = byTier(9, 15)
/** Turns of the event loop in which the answers that have arrived are read: head, body and end, and a spare. */
const TURNS = 4

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
    text: 'const all = selectMatchingCalls(db, scan)\n  const { total }',
    by: `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 40)
  const all = selectMatchingCalls(db, scan)
  const { total }`,
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
/**
 * Keeps this number of requests of one client in flight, each followed by the next, while another client makes
 * its own. During its median request, fewer than half of that number are answered: without turns, all that
 * were waiting before it. A count is the same on a busy machine.
 */
async function expectTurns(
  count: number,
  ofOne: () => Promise<FullResponse>,
  ofAnother: () => Promise<FullResponse>,
): Promise<void> {
  const { signal } = (attack = new AbortController())
  let answered = 0
  const loop = async (): Promise<void> => {
    while (!signal.aborted) {
      expect((await ofOne()).status).toBe(200)
      answered += 1
    }
  }
  loops = Array.from({ length: count }, loop)
  await expect.poll(() => answered).toBeGreaterThan(0)
  const meanwhile: number[] = []
  while (meanwhile.length < REQUESTS) {
    // On a busy machine many answers have arrived that are not read yet. They were made before this request.
    for (let turn = 0; turn < TURNS; turn++) await setImmediate()
    const before = answered
    expect((await ofAnother()).status).toBe(200)
    meanwhile.push(answered - before)
  }
  expect(meanwhile.toSorted((a, b) => a - b)[REQUESTS >> 1]).toBeLessThan(count / 2)
}

function get(path: string, name: string, id: number): Promise<FullResponse> {
  const headers = { authorization: `access-token-of-${name}`, 'gateway-user': String(id) }
  return call(fixture.gateway.url, undefined, { method: 'GET', path, headers })
}

const bob = (): Promise<FullResponse> => fixture.chat('bob', ask('m'))

describe('one client', () => {
  test("a client with more queued writes than one commit takes delays no other client's call", async () => {
    await expectTurns(MANY, () => fixture.chat('ann', ask('m')), bob)
    const lag = async (): Promise<number> => {
      const { text } = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/metrics' })
      return Number(/^sluice_ledger_lag (\d+)$/m.exec(text)?.[1])
    }
    await expect.poll(lag).toBeGreaterThan(16)
  })

  test("a client whose many calls have idempotency keys delays no other client's call", async () => {
    let calls = 0
    const ann = (): Promise<FullResponse> =>
      fixture.chat('ann', ask('m'), { headers: { 'idempotency-key': `call ${(calls += 1)}` } })
    await expectTurns(MANY, ann, bob)
  })

  test('a client that reads a long usage log repeatedly delays no reads of other clients', async () => {
    await expectTurns(
      MANY_READS,
      () => get('/api/log/self', 'ann', 2),
      () => get('/api/user/self', 'bob', 3),
    )
  })
})
