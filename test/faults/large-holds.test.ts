import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { BatchClient, chatLine } from '../fixtures/batches.ts'
import { call } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const OPERATOR = { id: 1, accessToken: ROOT.access_token }
/** `docs/ledger.md: Holds`: what one call holds at most, and all calls of a user together. */
const [MAX_HOLD, MAX_HELD] = [2 ** 50, 2 ** 53 - 1]

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { hold_wait: 0, batches: { parallel: 1 } },
    // A call would hold 2 × 10^15 units.
    groups: { default: { ratio: 4_000 } },
    models: { silent: { price: { ...PLAIN_PRICE, request: 1_000_000 } } },
    channels: [channel('silent', upstream.baseUrl('silent'))],
    users: [
      { ...ROOT, tokens: [token('root')] },
      ...['ann', 'bob'].map((name, at) => user(2 + at, name, [token(name)], { unlimited_quota: true })),
    ],
  }))
  fixture.upstream.script('silent', { kind: 'silence' })
})
afterAll(() => fixture.close())

/** The gateway reports accounts of all users, as it cannot while it reads a sum that it cannot count. */
async function expectReadable(): Promise<void> {
  const { url } = fixture.gateway
  expect((await manage(url, OPERATOR, 'GET /api/token/')).status).toBe(200)
  for (const key of ['root', 'ann', 'bob'])
    expect((await call(url, undefined, { method: 'GET', path: '/api/usage/token/', key })).status).toBe(200)
}

const refused = {
  code: 'insufficient_quota',
  needed: MAX_HOLD,
  left: MAX_HELD - 7 * MAX_HOLD,
}

test('calls of an unlimited user hold no more than can be counted, and further ones are refused', async () => {
  const { gateway, upstream } = fixture
  const running = Array.from({ length: 7 }, () => fixture.live('ann', ask('silent')).catch(() => undefined))
  await upstream.receivedAtLeast('silent', running.length)
  const answer = await fixture.chat('ann', ask('silent'))
  expect(answer.status, answer.text).toBe(403)
  expect(JSON.parse(answer.text)).toMatchObject({ error: refused })
  await expect.poll(() => databaseOf(gateway.dataDir).openHolds().length).toBe(running.length)
  await expectReadable()
  await gateway.kill()
  await Promise.all(running)
  await gateway.restart()
  await expectReadable()
})

test('a batch whose lines together hold more than can be counted is refused', async () => {
  const bob = new BatchClient(fixture.gateway.url, 'bob')
  const lines = Array.from({ length: 8 }, (_, at) => chatLine(`l${at}`, 'silent'))
  const answer = await bob.submit(lines)
  expect(answer.status, answer.text).toBe(403)
  expect(JSON.parse(answer.text)).toMatchObject({ error: { code: 'insufficient_quota' } })
  await expectReadable()
})

test('a gateway starts although a hold in its database is too large to be counted', async () => {
  const { gateway } = fixture
  const bob = new BatchClient(gateway.url, 'bob')
  await bob.make([chatLine('l', 'silent')])
  await gateway.kill()
  databaseOf(gateway.dataDir).write('update holds set amount = 18014398509481982')
  await gateway.restart()
  await expectReadable()
})
