import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, manage, type ManagementResponse } from '../fixtures/account.ts'
import type { Body } from '../fixtures/client.ts'
import { ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BOB = { id: 3, accessToken: 'the-access-token-of-bob' }

let gateway: RunningGateway
let ids: Record<'one' | 'two' | 'gone' | 'foreign', number>
beforeAll(async () => {
  gateway = await startGateway({
    config: {
      rate_limits: {},
      users: [
        ROOT,
        user(2, 'ann', [token('one'), token('two'), token('gone')], { access_token: ANN.accessToken }),
        user(3, 'bob', [token('foreign')], { access_token: BOB.accessToken }),
      ],
    },
  })
  const database = databaseOf(gateway.dataDir)
  const idOf = (name: string): number => database.token(`token-${name}`).id
  ids = { one: idOf('one'), two: idOf('two'), gone: idOf('gone'), foreign: idOf('foreign') }
  await manage(gateway.url, ANN, `DELETE /api/token/${ids.gone}`)
})
afterAll(() => gateway.discard())

const reveal = (account: Account, id: number | string) =>
  manage<{ key: string }>(gateway.url, account, `POST /api/token/${id}/key`)
const revealAll = (body: Body) =>
  manage<{ keys: Record<string, string> }>(gateway.url, ANN, 'POST /api/token/batch/keys', body)

function expectNeverKept({ headers }: ManagementResponse): void {
  expect(headers['cache-control']).toBe('no-store, no-cache, must-revalidate, private, max-age=0')
  expect(headers['pragma']).toBe('no-cache')
  expect(headers['expires']).toBe('0')
}

describe('POST /api/token/:id/key', () => {
  test('POST /api/token/:id/key returns the whole key with sk-, and forbids caching', async () => {
    const answer = await reveal(ANN, ids.one)
    expect(answer).toMatchObject({
      status: 200,
      body: { success: true, message: '', data: { key: 'sk-one' } },
    })
    expectNeverKept(answer)
  })

  test("POST /api/token/:id/key of another user's, a deleted and an unknown token is the same 404", async () => {
    const missing = await reveal(ANN, 987_654_321)
    expect(missing).toMatchObject({ status: 404, success: false })
    for (const id of [ids.foreign, ids.gone]) {
      const answer = await reveal(ANN, id)
      expect([answer.status, answer.body]).toEqual([404, missing.body])
      expect(answer.headers['cache-control']).toBe('no-store')
    }
  })

  test.each(['0', '-1', '1e3', '9007199254740992', 'x'])(
    'POST /api/token/:id/key with the invalid id %s is a 400',
    async (id) => {
      expect(await reveal(ANN, id)).toMatchObject({ status: 400, success: false })
    },
  )

  test('POST /api/token/:id/key leaves no key in the log', async () => {
    await expect.poll(() => gateway.logs()).toContain(`/api/token/${ids.one}/key`)
    expect(gateway.logs()).not.toContain('sk-one')
  })
})

describe('POST /api/token/batch/keys', () => {
  test('POST /api/token/batch/keys returns the whole keys by id, without unknown ids and those of other users', async () => {
    const answer = await revealAll({ ids: [ids.two, ids.foreign, ids.one, ids.gone, 987_654_321, ids.one] })
    expect(answer.status).toBe(200)
    expect(answer.data).toEqual({ keys: { [ids.one]: 'sk-one', [ids.two]: 'sk-two' } })
    expectNeverKept(answer)
    expect((await revealAll({ ids: [ids.foreign] })).data).toEqual({ keys: {} })
  })

  test('POST /api/token/batch/keys accepts 100 ids, and refuses 101 with the maximum', async () => {
    const many = Array.from({ length: 101 }, (_, index) => index + 1)
    expect((await revealAll({ ids: many.slice(0, 100) })).status).toBe(200)
    const answer = await revealAll({ ids: many })
    expect(answer.status).toBe(400)
    expect(answer.body).toEqual({
      success: false,
      message: expect.stringContaining('100') as unknown,
      code: 'batch_too_many',
      limit: 100,
      given: 101,
    })
  })

  test.each([
    ['no ids', {}],
    ['null', { ids: null }],
    ['an empty array', { ids: [] }],
    ['an object', { ids: { 0: 1 } }],
    ['an id that is not an array', { ids: 1 }],
    ['0', { ids: [0] }],
    ['-1', { ids: [1, -1] }],
    ['half an id', { ids: [1.5] }],
    ['2^53', { ids: [2 ** 53] }],
    ['text', { ids: ['1e3'] }],
    ['text of digits', { ids: ['1'] }],
    ['null within', { ids: [null] }],
    ['a list of lists', { ids: [[1]] }],
    ['a list', [1]],
    ['malformed JSON', '{"ids":[1'],
  ])('POST /api/token/batch/keys with %s is a 400', async (_, body) => {
    expect(await revealAll(body)).toMatchObject({ status: 400, success: false })
  })

  test('POST /api/token/batch/keys with 10,000 invalid ids is a 400 with one short message', async () => {
    const { status, message } = await revealAll({ ids: Array.from({ length: 10_000 }, () => 0) })
    expect(status).toBe(400)
    expect(message.length).toBeLessThan(1000)
  })
})
