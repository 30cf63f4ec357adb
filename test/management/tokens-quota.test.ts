import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { AMPLE, channel, priced, ROOT, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { keyOf, createToken, type ShownToken } from '../fixtures/tokens.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
/** Ten prompt tokens at one quota unit, and twenty output tokens at four. */
const COST = 10 + 20 * 4

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { hold_wait: 0 },
    rate_limits: {},
    models: priced(['m', 'slow']),
    channels: [channel('m', upstream.baseUrl('m')), channel('slow', upstream.baseUrl('slow'))],
    users: [ROOT, user(2, 'ann', [], { access_token: ANN.accessToken })],
  }))
  database = databaseOf(fixture.gateway.dataDir)
  fixture.upstream.script('m', { kind: 'whole', usage: usageText(10, 20) })
})
afterAll(() => fixture?.close())

const put = (id: number, fields: Record<string, unknown>) =>
  manage<ShownToken>(fixture.gateway.url, ANN, 'PUT /api/token/', { id, ...fields })

/** A token whose only call is an open stream with a hold; `finish` ends the stream. */
async function streaming(name: string, quota: number) {
  const { id } = await createToken(fixture.gateway.url, ANN, name, { remain_quota: quota })
  const key = await keyOf(fixture.gateway.url, ANN, id)
  const finished = Promise.withResolvers<void>()
  fixture.upstream.script('slow', { kind: 'stream', endsAfter: finished.promise, usage: usageText(10, 20) })
  const answer = await fixture.live(key, askStream('slow', { max_tokens: 1000 }))
  await answer.until('"content"')
  const hold = database.openHolds().find(({ token_id: tokenId }) => tokenId === id)?.amount ?? 0
  expect(hold).toBeGreaterThanOrEqual(4000)
  const finish = (): ReturnType<typeof answer.end> => {
    finished.resolve()
    return answer.end()
  }
  return { id, key, hold, finish }
}

describe('a quota set while a stream is open', () => {
  test("a token's quota that is set while a stream is open is reduced by the stream's hold, and later charged for the stream", async () => {
    const { id, key, hold, finish } = await streaming('more', 6000)
    // A second such call needs more than what the first one leaves of 6,000.
    expect((await fixture.chat(key, ask('m', { max_tokens: 1000 }))).status).toBe(429)
    expect((await put(id, { remain_quota: 7000 })).data.remain_quota).toBe(7000)
    const refused = await fixture.chat(key, ask('m', { max_tokens: 1000 }))
    expect([refused.status, refused.json().error.code]).toEqual([429, 'quota_held'])
    expect(refused.json().error.message).toContain(`${7000 - hold} remain`)
    expect((await put(id, { remain_quota: 2 * hold })).status).toBe(200)
    expect((await fixture.chat(key, ask('m', { max_tokens: 1000 }))).status).toBe(200)
    expect((await finish()).text).toContain('[DONE]')
    expect(database.token('more')).toMatchObject({
      remain_quota: 2 * hold - 2 * COST,
      used_quota: 2 * COST,
    })
    // The hold is released, to the unit.
    const { remain_quota: left } = database.token('more')
    const over = await fixture.chat(key, ask('m', { max_tokens: 100_000 }))
    expect(over.json().error.message).toContain(`quota is not enough for this request: ${left} remain`)
  })

  test("a token's quota that is set to zero while a stream is open lets the stream end, and no other call begin", async () => {
    const { id, key, hold, finish } = await streaming('nothing', 100_000)
    expect((await put(id, { remain_quota: 1 })).data.status).toBe(1)
    const refused = await fixture.chat(key, ask('m'))
    expect(refused.json().error.message).toContain(`${1 - hold} remain`)
    expect((await put(id, { remain_quota: 0 })).data.status).toBe(4)
    expect((await fixture.chat(key, ask('m'))).status).toBe(401)
    expect((await finish()).text).toContain('[DONE]')
    expect(database.token('nothing')).toMatchObject({ remain_quota: -COST, used_quota: COST })
    expect((await fixture.chat(key, ask('m'))).json().error).toMatchObject({
      code: 'token_exhausted',
      message: expect.stringContaining('an administrator of the gateway, can raise its quota'),
    })
  })

  test('a token that is made unlimited while a stream is open can make another call that its quota refused before', async () => {
    const { id, key, finish } = await streaming('limit', 6000)
    expect((await fixture.chat(key, ask('m', { max_tokens: 1000 }))).status).toBe(429)
    await put(id, { unlimited_quota: true })
    expect((await fixture.chat(key, ask('m', { max_tokens: 1000 }))).status).toBe(200)
    await finish()
    expect(database.token('limit')).toMatchObject({ remain_quota: 6000 - 2 * COST, used_quota: 2 * COST })
  })
})

test("a token's used and remaining quota are exact after concurrent calls and changes of its quota", async () => {
  const { id } = await createToken(fixture.gateway.url, ANN, 'storm', { remain_quota: 1_000_000 })
  const key = await keyOf(fixture.gateway.url, ANN, id)
  const calls = Array.from({ length: 60 }, async () => {
    expect((await fixture.chat(key, ask('m', { max_tokens: 20 }))).status).toBe(200)
  })
  const settings = Array.from({ length: 20 }, async (_, nth) => {
    expect((await put(id, { remain_quota: 1_000_000 + nth, name: `storm` })).status).toBe(200)
  })
  await Promise.all([...calls, ...settings])
  const row = database.token('storm')
  expect(row.used_quota).toBe(60 * COST)
  expect(database.openHolds()).toEqual([])
  // The balance in memory equals that in the row, also after everything was set once more.
  const left = async (): Promise<string> =>
    (await fixture.chat(key, ask('m', { max_tokens: 1_000_000 }))).json().error.message
  expect(await left()).toContain(`: ${row.remain_quota} remain`)
  await put(id, { remain_quota: 777 })
  expect(await left()).toContain(': 777 remain')
  // Setting token quotas does not change their user's balance; only charges do.
  const { quota, used_quota: used } = database.user('ann')
  expect(quota + used).toBe(AMPLE)
})
