import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
/** 10 prompt tokens at one quota unit, and 5 output tokens at four. */
const COST = 10 + 5 * 4
const QUOTA = 100_000

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 } },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann'), token('second')], { quota: QUOTA })],
  }))
})
afterAll(() => fixture?.close())

const row = () => databaseOf(fixture.gateway.dataDir).user('ann')
const quota = (mode: string, value: number) =>
  manage<{ quota: number }>(fixture.gateway.url, ROOT_ACCOUNT, 'POST /api/user/manage', {
    id: 2,
    action: 'add_quota',
    mode,
    value,
  })

beforeEach(async () => {
  fixture.upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
  await quota('override', QUOTA)
})

describe('a quota changed during a call', () => {
  test.each([
    ['add', 777, QUOTA + 777],
    ['subtract', 777, QUOTA - 777],
    ['override', 50_000, 50_000],
    ['override', 0, 0],
  ])(
    "a user's quota that an administrator changes during a call is charged exactly for the call: %s %i",
    async (mode, value, after) => {
      const finished = Promise.withResolvers<void>()
      fixture.upstream.script('m', { kind: 'stream', endsAfter: finished.promise, usage: usageText(10, 5) })
      const stream = await fixture.live('ann', askStream('m', { max_tokens: 100 }))
      await stream.until('data:')
      const { status, data } = await quota(mode, value)
      expect([status, data.quota]).toEqual([200, after])
      expect(databaseOf(fixture.gateway.dataDir).openHolds()).toHaveLength(1)
      finished.resolve()
      expect((await stream.end()).text).toContain('[DONE]')
      expect(row().quota).toBe(after - COST)
      // The balance in memory equals the row: exactly this amount can be spent, and no more.
      fixture.upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
      const call = await fixture.chat('second', ask('m', { max_tokens: 5_000_000 }))
      expect(call.status).toBe(403)
      expect(call.json().error.message).toContain(`${after - COST} remain`)
    },
  )

  test("a user's quota and used quota are exact after calls and concurrent additions and subtractions of quota", async () => {
    const usedBefore = row().used_quota
    const calls = Array.from({ length: 40 }, (_, index) =>
      fixture.chat(index % 2 === 0 ? 'ann' : 'second', ask('m', { max_tokens: 100 })),
    )
    const changes = [quota('add', 11), quota('subtract', 7), quota('add', 5), quota('subtract', 2)]
    expect((await Promise.all(changes)).map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(calls.map(() => 200))
    expect(row().used_quota - usedBefore).toBe(40 * COST)
    expect(row().quota).toBe(QUOTA + 11 - 7 + 5 - 2 - 40 * COST)
    const refused = await fixture.chat('ann', ask('m', { max_tokens: 5_000_000 }))
    expect(refused.json().error.message).toContain(`${row().quota} remain`)
  })
})

describe('a quota', () => {
  test('quota that is subtracted from a user cannot be spent by the next call, and quota that is added can', async () => {
    expect((await quota('subtract', QUOTA)).data.quota).toBe(0)
    const refused = await fixture.chat('ann', ask('m'))
    expect([refused.status, refused.json().error.code]).toEqual([403, 'insufficient_quota'])
    await quota('add', QUOTA)
    expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
  })

  test("the quota that PUT /api/user/ sets for a user is the user's new balance", async () => {
    expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
    await manage(fixture.gateway.url, ROOT_ACCOUNT, 'PUT /api/user/', { id: 2, quota: 3 })
    expect(row().quota).toBe(3)
    expect((await fixture.chat('ann', ask('m'))).json().error.message).toContain('3 remain')
  })

  test("a user's quota cannot be set below zero or above the maximum", async () => {
    const less = await quota('subtract', QUOTA + 1)
    expect([less.status, less.message]).toEqual([
      400,
      `this user has ${QUOTA} quota units, and ${QUOTA + 1} are more`,
    ])
    const bound = 500_000_000_000_000
    expect((await quota('add', bound)).status).toBe(400)
    expect(row().quota).toBe(QUOTA)
    expect((await quota('override', bound)).data.quota).toBe(bound)
    expect((await quota('add', 1)).status).toBe(400)
  })
})
