import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { ROOT, user } from '../fixtures/configuration.ts'
import { logIn } from '../fixtures/console.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BOB = { id: 3, accessToken: 'the-access-token-of-bob' }
const EVE = { id: 4, accessToken: 'the-access-token-of-eve' }

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway({
    config: {
      rate_limits: { critical: { requests: 20, window: '20m' } },
      users: [
        ROOT,
        user(2, 'ann', [], { access_token: ANN.accessToken }),
        user(3, 'bob', [], { access_token: BOB.accessToken }),
        user(4, 'eve', [], { access_token: EVE.accessToken }),
      ],
    },
  })
  await manage(gateway.url, ROOT_ACCOUNT, 'PUT /api/user/', { id: 2, password: 'the first one' })
})
afterAll(() => gateway.discard())

const change = (account: typeof ANN, body: object | string) =>
  manage<Record<string, unknown>>(gateway.url, account, 'PUT /api/user/self', body)

describe('PUT /api/user/self', () => {
  test('PUT /api/user/self changes the display name, and no field that the user may not change', async () => {
    const { data: before } = await manage<Record<string, unknown>>(gateway.url, ANN, 'GET /api/user/self')
    const body = {
      display_name: 'Ann B.',
      username: 'root2',
      role: 100,
      quota: 5,
      group: 'x',
      remark: 'x',
      id: 1,
    }
    expect(await change(ANN, body)).toMatchObject({
      status: 200,
      data: { ...before, display_name: 'Ann B.' },
    })
    const { data: after } = await manage<Record<string, unknown>>(gateway.url, ANN, 'GET /api/user/self')
    expect(after).toEqual({ ...before, display_name: 'Ann B.' })
    expect(after).not.toHaveProperty('remark')
  })

  test('PUT /api/user/self changes the password of a user who sends the present one', async () => {
    const wrong = { status: 400, message: 'original_password: expected your present password' }
    expect(await change(ANN, { password: 'the second one' })).toMatchObject(wrong)
    expect(await change(ANN, { password: 'the second one', original_password: '' })).toMatchObject(wrong)
    expect(await change(ANN, { password: 'the second one', original_password: 'a guess' })).toMatchObject(
      wrong,
    )
    const body = { password: 'the second one', original_password: 'the first one', display_name: 'Ann' }
    expect(await change(ANN, body)).toMatchObject({ status: 200, data: { display_name: 'Ann' } })
    const logsIn = async (password: string) =>
      (await logIn(gateway.url, { username: 'ann', password })).status
    expect([await logsIn('the second one'), await logsIn('the first one')]).toEqual([200, 401])
  })

  test('PUT /api/user/self sets a first password without a present one; the next change needs the present one', async () => {
    expect(await change(BOB, { password: 'the first one' })).toMatchObject({
      status: 200,
      data: { has_password: true },
    })
    const next = { password: 'the second one', keep_access_tokens: true }
    expect((await change(BOB, next)).status).toBe(400)
    expect((await change(BOB, { ...next, original_password: 'the first one' })).status).toBe(200)
  })

  test.each([
    [{ password: '7 chars', original_password: 'x' }, 'password: expected a text of 8 to 128 characters'],
    [{ password: 5 }, 'password: expected a text of 8 to 128 characters'],
    [{ display_name: '' }, 'display_name: expected a text of 1 to 64 characters'],
    [{ display_name: 'a\nb' }, 'display_name: expected'],
    [{ display_name: '👩‍👩‍👧‍👦'.repeat(65) }, 'display_name: expected'],
    ['[]', 'expected an object with the fields to change'],
  ])('PUT /api/user/self with %j is a 400', async (body, sentence) => {
    const answer = await change(BOB, body)
    expect([answer.status, answer.message]).toEqual([400, expect.stringContaining(sentence)])
  })

  test('PUT /api/user/self refuses password changes with 429 after 20 attempts, so that none is guessed', async () => {
    const statuses: number[] = []
    for (let n = 0; n < 21; n += 1) statuses.push((await change(EVE, { password: 'x' })).status)
    expect(statuses).toEqual([...Array.from({ length: 20 }, () => 400), 429])
  })
})
