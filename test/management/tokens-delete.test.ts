import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { manage } from '../fixtures/account.ts'
import type { Body } from '../fixtures/client.ts'
import { AMPLE, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { keyOf, createToken, type ShownPage } from '../fixtures/tokens.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BOB = { id: 3, accessToken: 'the-access-token-of-bob' }

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: {},
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [
      ROOT,
      user(2, 'ann', [token('declared')], { access_token: ANN.accessToken }),
      user(3, 'bob', [token('ofbob')], { access_token: BOB.accessToken }),
    ],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

const made = (name: string) => createToken(fixture.gateway.url, ANN, name, { remain_quota: 100_000 })
const remove = (id: number | string) => manage(fixture.gateway.url, ANN, `DELETE /api/token/${id}`)
const removeAll = (body: Body) => manage<number>(fixture.gateway.url, ANN, 'POST /api/token/batch', body)
const named = async () =>
  (await manage<ShownPage>(fixture.gateway.url, ANN, 'GET /api/token/?page_size=100')).data.items.map(
    ({ name }) => name,
  )

describe('DELETE /api/token/:id', () => {
  test('DELETE /api/token/:id returns success and no other data; the very next call is refused, and the token is no longer listed', async () => {
    const { id } = await made('unwanted')
    const key = await keyOf(fixture.gateway.url, ANN, id)
    fixture.upstream.script('m', { kind: 'whole' })
    expect((await fixture.chat(key, ask('m'))).status).toBe(200)
    const { status, body } = await remove(id)
    expect([status, body]).toEqual([200, { success: true, message: '' }])
    const refused = await fixture.chat(key, ask('m'))
    expect([refused.status, refused.json().error.code]).toEqual([401, 'token_deleted'])
    expect(await named()).not.toContain('unwanted')
    for (const request of [
      `GET /api/token/${id}`,
      `POST /api/token/${id}/key`,
      `DELETE /api/token/${id}`,
    ] as const)
      expect((await manage(fixture.gateway.url, ANN, request)).status).toBe(404)
    expect((await manage(fixture.gateway.url, ANN, 'PUT /api/token/', { id, name: 'x' })).status).toBe(404)
    // The token's row stays, for its charges.
    expect(database.token('unwanted')).toMatchObject({ id })
  })

  test("DELETE /api/token/:id of another user's token, and of an unknown one, is the same 404, and deletes nothing", async () => {
    const foreign = await remove(database.token('token-ofbob').id)
    const missing = await remove(987_654_321)
    expect(foreign).toMatchObject({ status: 404, success: false })
    expect([missing.status, missing.body]).toEqual([404, foreign.body])
    fixture.upstream.script('m', { kind: 'whole' })
    expect((await fixture.chat('ofbob', ask('m'))).status).toBe(200)
  })

  test.each(['0', '-1', '1e3', '9007199254740992', 'x'])(
    'DELETE /api/token/:id with the invalid id %s is a 400',
    async (id) => {
      expect(await remove(id)).toMatchObject({ status: 400, success: false })
    },
  )

  test('DELETE /api/token/:id lets a call in flight finish, and settles it', async () => {
    const { id } = await made('busy')
    const before = database.user('ann')
    const key = await keyOf(fixture.gateway.url, ANN, id)
    const finished = Promise.withResolvers<void>()
    fixture.upstream.script('m', { kind: 'stream', endsAfter: finished.promise, usage: usageText(10, 20) })
    const answer = await fixture.live(key, askStream('m', { max_tokens: 100 }))
    await answer.until('"content"')
    expect((await remove(id)).status).toBe(200)
    expect((await fixture.chat(key, ask('m'))).status).toBe(401)
    finished.resolve()
    expect((await answer.end()).text).toContain('[DONE]')
    expect(database.token('busy')).toMatchObject({ used_quota: 90, remain_quota: 100_000 - 90 })
    expect(database.user('ann').quota).toBe(before.quota - 90)
    expect(database.openHolds()).toEqual([])
    expect(database.user('ann').quota + database.user('ann').used_quota).toBe(AMPLE)
  })

  test('DELETE /api/token/:id of a token that gateway.yaml declares is permanent: a restart does not create it again', async () => {
    expect((await remove(database.token('token-declared').id)).status).toBe(200)
    await fixture.gateway.restart()
    expect(await named()).not.toContain('token-declared')
    expect((await fixture.chat('declared', ask('m'))).status).toBe(401)
  })
})

describe('POST /api/token/batch', () => {
  test('POST /api/token/batch returns the number of deleted tokens, and ignores ids of other users', async () => {
    const [one, two, kept] = [await made('one'), await made('two'), await made('kept')]
    const keys = await Promise.all([one, two].map(({ id }) => keyOf(fixture.gateway.url, ANN, id)))
    fixture.upstream.script('m', { kind: 'whole' })
    for (const key of keys) expect((await fixture.chat(key, ask('m'))).status).toBe(200)
    const ids = [one.id, two.id, two.id, database.token('token-ofbob').id, 987_654_321]
    const { status, body } = await removeAll({ ids })
    expect([status, body]).toEqual([200, { success: true, message: '', data: 2 }])
    for (const key of keys) {
      const refused = await fixture.chat(key, ask('m'))
      expect([refused.status, refused.json().error.code]).toEqual([401, 'token_deleted'])
    }
    expect((await fixture.chat('ofbob', ask('m'))).status).toBe(200)
    expect(await named()).toContain('kept')
    expect((await removeAll({ ids })).data).toBe(0)
    expect((await removeAll({ ids: [kept.id] })).data).toBe(1)
  })

  test('POST /api/token/batch accepts 1,000 ids, and refuses 1,001 with the maximum', async () => {
    const { id } = await made('among many')
    const ids = Array.from({ length: 1000 }, (_, index) => 1_000_000 + index)
    const refused = await removeAll({ ids: [...ids, id] })
    expect(refused.status).toBe(400)
    expect(refused.body).toEqual({
      success: false,
      message: expect.stringContaining('1000') as unknown,
      code: 'batch_too_many',
      limit: 1000,
      given: 1001,
    })
    expect(await named()).toContain('among many')
    expect((await removeAll({ ids: [...ids.slice(1), id] })).data).toBe(1)
  })

  test.each([
    ['no ids', {}],
    ['null', { ids: null }],
    ['an empty array', { ids: [] }],
    ['an id that is not an array', { ids: 1 }],
    ['0', { ids: [0] }],
    ['-1', { ids: [-1] }],
    ['2^53', { ids: [2 ** 53] }],
    ['text', { ids: ['1e3'] }],
    ['malformed JSON', '{"ids":'],
  ])('POST /api/token/batch with %s is a 400', async (_, body) => {
    expect(await removeAll(body)).toMatchObject({ status: 400, success: false })
  })

  test('POST /api/token/batch with an invalid id deletes nothing', async () => {
    const { id } = await made('spared')
    expect((await removeAll({ ids: [id, 0] })).status).toBe(400)
    expect(await named()).toContain('spared')
  })
})
