import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { Browser } from '../fixtures/browser.ts'
import { plainConfiguration, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { type ScriptedProvider, startScriptedProvider } from '../fixtures/scripted-oidc.ts'

const ADA = { id: 3, accessToken: 'the-access-token-of-ada' }

let fixture: Fixture
let provider: ScriptedProvider
beforeAll(async () => {
  provider = await startScriptedProvider()
  const client = { name: 'corp', issuer: provider.issuer, client_id: 'sluice', client_secret: 'secret' }
  fixture = await startFixture((upstream) => ({
    ...plainConfiguration(upstream.baseUrl('m')),
    login: { oidc: [client] },
    users: [
      ROOT,
      user(2, 'ann', [token('ann')]),
      user(3, 'ada', [], { role: 10, access_token: ADA.accessToken }),
    ],
  }))
})
afterAll(async () => {
  await fixture?.close()
  await provider?.[Symbol.asyncDispose]()
})

const asAdmin = <Data = unknown>(request: Parameters<typeof manage>[2], body?: Record<string, unknown>) =>
  manage<Data>(fixture.gateway.url, ADA, request, body)
const lastActive = async (id: number): Promise<number> =>
  (await asAdmin<{ last_active: number }>(`GET /api/user/${id}`)).data.last_active

test("an administrator can list a user's linked identities, and unlink them by the same rules as the user", async () => {
  provider.person = { sub: 'subject of pat', preferred_username: 'pat' }
  const browser = new Browser()
  const location = await browser.locationOf(`${fixture.gateway.url}/api/user/oidc/corp`)
  await browser.get(provider.authorize(location))
  const { data } = await asAdmin<{ items: { id: number }[] }>('GET /api/user/search?keyword=pat')
  const id = data.items[0]?.id ?? 0
  const list = await asAdmin<Record<string, unknown>[]>(`GET /api/user/${id}/identities`)
  const identity = { issuer: provider.issuer, subject: 'subject of pat' }
  expect(list.data).toEqual([{ ...identity, provider: 'corp', created_time: expect.any(Number) }])
  expect(await lastActive(id)).toBeGreaterThan(Date.now() / 1000 - 600)

  const removal = `DELETE /api/user/${id}/identities?${new URLSearchParams(identity).toString()}` as const
  expect(await asAdmin(removal)).toMatchObject({ status: 400 })
  expect(await asAdmin('PUT /api/user/', { id, password: 'a new password' })).toMatchObject({ status: 200 })
  expect(await asAdmin(removal)).toMatchObject({ status: 200 })
  expect((await asAdmin(`GET /api/user/${id}/identities`)).data).toEqual([])
  expect(await asAdmin(removal)).toMatchObject({ status: 404 })
})

test('an administrator cannot list the linked identities of a user with the same or a higher role', async () => {
  const refused = await asAdmin('GET /api/user/1/identities')
  expect(refused.status).toBe(403)
})

test("last_active of a user is the minute of the last settled call, or 0, and is not in a user's own profile", async () => {
  expect(await lastActive(2)).toBe(0)
  const before = Math.floor(Date.now() / 60_000) * 60
  await fixture.chat('ann', ask('m'))
  await expect.poll(() => lastActive(2)).toBeGreaterThanOrEqual(before)
  expect((await lastActive(2)) % 60).toBe(0)
  expect((await asAdmin<object>('GET /api/user/self')).data).not.toHaveProperty('last_active')
})
