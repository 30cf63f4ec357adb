import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const ADMIN = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const COST = 30

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    groups: { filed: { budget: 7, budget_period: 'day' } },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann')], { access_token: ANN.accessToken })],
  }))
})
afterAll(() => fixture?.close())

type Fields = Readonly<Record<string, unknown>>

const put = (who: typeof ADMIN, path: Parameters<typeof manage>[2], body: Record<string, unknown>) =>
  manage<Fields>(fixture.gateway.url, who, path, body)
const codeOf = async (): Promise<string> => {
  fixture.upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
  const answer = await fixture.chat('ann', ask('m', { max_tokens: 5 }))
  return answer.status === 200 ? 'OK' : String(answer.json().error.code)
}

test('a budget of a key that is set over HTTP applies from the next call, and is shown with the amount used', async () => {
  const { data: page } = await manage<{ items: Fields[] }>(fixture.gateway.url, ANN, 'GET /api/token/')
  const id = Number(page.items[0]?.['id'])
  expect(page.items[0]).toMatchObject({ budget: 0, budget_period: '', budget_used: 0, budget_resets_at: 0 })
  const made = await put(ANN, 'PUT /api/token/', { id, budget: 10_000, budget_period: 'day' })
  expect(made.status, made.message).toBe(200)
  expect(made.data).toMatchObject({ budget: 10_000, budget_period: 'day', budget_used: 0 })
  expect(await codeOf()).toBe('OK')
  const shown = await manage<Fields>(fixture.gateway.url, ANN, `GET /api/token/${id}`)
  expect(shown.data).toMatchObject({ budget: 10_000, budget_used: COST })
  const resets = Number(shown.data['budget_resets_at'])
  expect(resets % 86_400).toBe(0)
  expect(resets).toBeGreaterThan(Date.now() / 1000 - 60)
  // The budget is below what was spent: calls are refused from now on, and the count is kept.
  await put(ANN, 'PUT /api/token/', { id, budget: COST - 1 })
  expect(await codeOf()).toBe('budget_exceeded')
  const refused = await manage<Fields>(fixture.gateway.url, ANN, `GET /api/token/${id}`)
  expect(refused.data).toMatchObject({ budget: COST - 1, budget_period: 'day', budget_used: COST })
  await put(ANN, 'PUT /api/token/', { id, budget: 0 })
  expect(await codeOf()).toBe('OK')
})

test('a budget that is set during a period counts later calls; removed and set again, it keeps the amount counted before', async () => {
  const { data: page } = await manage<{ items: Fields[] }>(fixture.gateway.url, ANN, 'GET /api/token/')
  const id = Number(page.items[0]?.['id'])
  const set = (budget: number) =>
    put(ANN, 'PUT /api/token/', { id, budget, ...(budget > 0 && { budget_period: 'month' }) })
  expect(await codeOf()).toBe('OK')
  expect((await set(10_000)).data).toMatchObject({ budget_used: 0 })
  expect(await codeOf()).toBe('OK')
  await set(0)
  // Without a budget, calls are not counted.
  expect(await codeOf()).toBe('OK')
  expect((await set(9_000)).data).toMatchObject({ budget_used: COST })
  await set(0)
})

test('a user has a budget and a rate limit, which administrators set and the user sees', async () => {
  const limits = { budget: 20_000, budget_period: 'week', rate_limit_requests: 50, rate_limit_window: 30 }
  const made = await put(ADMIN, 'PUT /api/user/', { id: 2, ...limits })
  expect(made.data, made.message).toMatchObject({ ...limits, budget_used: 0, rate_limit_parallel: 0 })
  expect(await codeOf()).toBe('OK')
  const own = await manage(fixture.gateway.url, ANN, 'GET /api/user/self')
  expect(own.data).toMatchObject({ ...limits, budget_used: COST })
  const { data: created } = await put(ADMIN, 'POST /api/user/', {
    username: 'bob',
    password: 'a password of bob',
    budget: 5,
    budget_period: 'month',
  })
  expect(created).toMatchObject({ budget: 5, budget_period: 'month' })
  await put(ADMIN, 'PUT /api/user/', { id: 2, budget: 0, rate_limit_requests: 0 })
})

test.each([
  [
    'an unknown period',
    { budget: 5, budget_period: 'year' },
    'budget_period: expected one of day, week, month',
  ],
  ['a budget without a period', { budget: 5 }, 'budget_period: expected one of day, week, month'],
  ['a period without a budget', { budget_period: 'day' }, 'budget: expected a budget for that period'],
  ['a budget below zero', { budget: -1 }, 'budget: expected a whole number'],
  ['a window of no time', { rate_limit_window: 0 }, 'rate_limit_window: expected whole seconds'],
])('an invalid budget or rate limit is refused: %s', async (_, fields, message) => {
  const { status, message: said } = await put(ADMIN, 'PUT /api/user/', { id: 2, ...fields })
  expect(status).toBe(400)
  expect(said).toContain(message)
})

test('budgets of groups can be set by the option GroupBudget, except those that gateway.yaml declares', async () => {
  const option = async () => {
    const { data } = await manage<{ key: string; value: string }[]>(
      fixture.gateway.url,
      ADMIN,
      'GET /api/option/',
    )
    return JSON.parse(data.find(({ key }) => key === 'GroupBudget')?.value ?? '{}')
  }
  const filed = { filed: { budget: 7, budget_period: 'day' } }
  expect(await option()).toEqual(filed)
  const set = (value: object) =>
    put(ADMIN, 'PUT /api/option/', { key: 'GroupBudget', value: JSON.stringify(value) })
  const gold = { budget: 9, budget_period: 'month' }
  expect(await set({ ...filed, default: gold })).toMatchObject({ status: 200 })
  expect(await option()).toEqual({ default: gold, ...filed })
  expect(await codeOf()).toBe('budget_exceeded')
  expect(await set({ ...filed, default: { budget: 9, budget_period: 'year' } })).toMatchObject({
    status: 400,
  })
  expect(await set({ default: gold })).toMatchObject({ status: 409 })
  expect(await set(filed)).toMatchObject({ status: 200 })
  expect(await codeOf()).toBe('OK')
})
