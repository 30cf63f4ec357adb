import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const SAM = { id: 3, accessToken: 'the-access-token-of-sam' }
/** Quota units that a call of 10 and 5 tokens costs. */
const COST = 30
const QUOTA = 100_000

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    groups: {
      default: {},
      sales: { budget: 5_000, budget_period: 'month' },
    },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'), { groups: ['default', 'sales'] })],
    users: [
      ROOT,
      user(2, 'ann', [token('ann'), token('limited', { remain_quota: 90_000 })], {
        access_token: ANN.accessToken,
        quota: QUOTA,
      }),
      user(3, 'sam', [token('sam')], { access_token: SAM.accessToken, quota: QUOTA, group: 'sales' }),
    ],
  }))
})
afterAll(() => fixture?.close())

type Fields = Readonly<Record<string, unknown>>

async function keyNamed(account: typeof ANN, name: string): Promise<Fields> {
  const { data } = await manage<{ items: Fields[] }>(fixture.gateway.url, account, 'GET /api/token/')
  return data.items.find((key) => key['name'] === name) ?? {}
}

async function leftOf(account: typeof ANN, name: string): Promise<unknown[]> {
  const { left, left_by } = await keyNamed(account, name)
  return [left, left_by]
}

async function userOf(id: number): Promise<Fields> {
  const { data } = await manage<Fields>(fixture.gateway.url, AS_ROOT, `GET /api/user/${id}`)
  return data
}

const change = async (
  account: typeof ANN,
  path: 'PUT /api/token/' | 'PUT /api/user/',
  body: Record<string, unknown>,
): Promise<void> => {
  const { status, message } = await manage(fixture.gateway.url, account, path, body)
  expect(status, message).toBe(200)
}

async function spend(key: string, count = 1): Promise<void> {
  for (let index = 0; index < count; index++) {
    fixture.upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    expect((await fixture.chat(key, ask('m', { max_tokens: 5 }))).status).toBe(200)
  }
}

test("a key's fields left and left_by have the amount and the name of the tightest of its quotas and budgets", async () => {
  // An unlimited key without a budget has what its user has.
  expect(await leftOf(ANN, 'token-ann')).toEqual([QUOTA, 'user'])
  expect(await leftOf(ANN, 'token-limited')).toEqual([90_000, 'key'])
  expect(await leftOf(SAM, 'token-sam')).toEqual([5_000, 'group_budget'])
  await spend('ann')
  expect(await leftOf(ANN, 'token-ann')).toEqual([QUOTA - COST, 'user'])

  await change(AS_ROOT, 'PUT /api/user/', { id: 2, budget: 80_000, budget_period: 'week' })
  expect(await leftOf(ANN, 'token-limited')).toEqual([80_000, 'user_budget'])
  const { id } = await keyNamed(ANN, 'token-limited')
  await change(ANN, 'PUT /api/token/', { id, budget: 70_000, budget_period: 'day' })
  expect(await leftOf(ANN, 'token-limited')).toEqual([70_000, 'key_budget'])
  await spend('limited')
  expect(await leftOf(ANN, 'token-limited')).toEqual([70_000 - COST, 'key_budget'])
  expect(await leftOf(ANN, 'token-ann')).toEqual([80_000 - COST, 'user_budget'])
  await change(ANN, 'PUT /api/token/', { id, budget: 0 })
})

test("the amount that a user may still spend is not reduced by quotas and budgets of the user's keys", async () => {
  await change(AS_ROOT, 'PUT /api/user/', { id: 2, budget: 0 })
  const { quota } = await userOf(2)
  expect(await userOf(2)).toMatchObject({ left: quota, left_by: 'user' })
  expect(await userOf(3)).toMatchObject({ left: 5_000, left_by: 'group_budget' })
  const { data: page } = await manage<{ items: Fields[] }>(fixture.gateway.url, AS_ROOT, 'GET /api/user/')
  expect(page.items.find((one) => one['id'] === 3)).toMatchObject({ left: 5_000, left_by: 'group_budget' })
  const { data: own } = await manage<Fields>(fixture.gateway.url, SAM, 'GET /api/user/self')
  expect(Object.keys(own)).not.toContain('left')
})

test('GET /api/console states the amount that the account may still spend, and the budgets of its user and groups', async () => {
  const shellOf = async (account: typeof ANN): Promise<Fields> =>
    (await manage<Fields>(fixture.gateway.url, account, 'GET /api/console')).data

  expect(await shellOf(SAM)).toMatchObject({
    left: 5_000,
    left_by: 'group_budget',
    budgets: [
      {
        subject: 'group',
        name: 'sales',
        budget: 5_000,
        budget_period: 'month',
        budget_used: 0,
        budget_held: 0,
      },
    ],
  })
  await change(AS_ROOT, 'PUT /api/user/', { id: 3, budget: 4_000, budget_period: 'day' })
  await spend('sam')
  const { left, left_by, budgets } = await shellOf(SAM)
  expect([left, left_by]).toEqual([4_000 - COST, 'user_budget'])
  const midnight = (Math.floor(Date.now() / 86_400_000) + 1) * 86_400
  expect(budgets).toEqual([
    {
      subject: 'user',
      name: 'sam',
      budget: 4_000,
      budget_period: 'day',
      budget_used: COST,
      budget_held: 0,
      budget_resets_at: midnight,
    },
    expect.objectContaining({ subject: 'group', name: 'sales', budget_used: COST }),
  ])
  // The budget of a group that a key of the account names limits its calls too.
  const { id } = await keyNamed(ANN, 'token-ann')
  expect((await shellOf(ANN))['budgets']).toEqual([])
  await change(ANN, 'PUT /api/token/', { id, group: 'sales' })
  expect((await shellOf(ANN))['budgets']).toMatchObject([{ subject: 'group', name: 'sales' }])
  expect(await leftOf(ANN, 'token-ann')).toEqual([5_000 - COST, 'group_budget'])
})

test('GET /api/group/budgets lists the budgets of all groups, and what is used of them, for administrators', async () => {
  const { data } = await manage<Fields[]>(fixture.gateway.url, AS_ROOT, 'GET /api/group/budgets')
  expect(data).toEqual([
    { group: 'default', budget: 0, budget_period: '', budget_used: 0, budget_held: 0, budget_resets_at: 0 },
    {
      group: 'sales',
      budget: 5_000,
      budget_period: 'month',
      budget_used: COST,
      budget_held: 0,
      budget_resets_at: expect.any(Number),
    },
  ])
  const refused = await manage(fixture.gateway.url, ANN, 'GET /api/group/budgets')
  expect([refused.status, refused.body['code']]).toEqual([403, 'role_too_low'])
})

test('an API key whose calls are refused by its budget is in the list of stopped keys until the budget is raised', async () => {
  const { id } = await keyNamed(ANN, 'token-limited')
  const stopped = async (account = ANN, path: `/${string}` = '/api/token/stopped'): Promise<unknown> =>
    (await manage(fixture.gateway.url, account, `GET ${path}?ids=${String(id)},999`)).data
  await change(ANN, 'PUT /api/token/', { id, budget: 1_000, budget_period: 'month' })
  expect(await stopped()).toEqual([])
  const refused = await fixture.chat('limited', ask('m', { max_tokens: 1000 }))
  expect(refused.json()).toMatchObject({ error: { code: 'budget_exceeded' } })
  // Nothing was spent, and yet the budget stops the key.
  expect(await leftOf(ANN, 'token-limited')).toEqual([1_000, 'key_budget'])
  await expect.poll(() => stopped()).toEqual([id])
  expect(await stopped(AS_ROOT, '/api/user/2/tokens/stopped')).toEqual([id])
  expect(await stopped(SAM)).toEqual([])
  // A call that is answered shows that the budget does not stop the key.
  await spend('limited')
  expect(await stopped()).toEqual([])
  await change(ANN, 'PUT /api/token/', { id, budget: COST })
  expect(await stopped()).toEqual([id])
  await change(ANN, 'PUT /api/token/', { id, budget: 2_000 })
  expect(await stopped()).toEqual([])
})
