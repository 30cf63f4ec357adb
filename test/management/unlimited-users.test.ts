import { describe, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { AMPLE, channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, startFixture } from '../fixtures/fixture.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { setNodes, SHARED } from '../nodes/fixture.ts'

const ADMIN = { id: 1, accessToken: ROOT['access_token'] }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const OTHER = { id: 3, accessToken: 'the-access-token-of-an-administrator' }
/** Ten prompt tokens at one quota unit, and twenty output tokens at four. */
const COST = 10 + 20 * 4

const configure = (upstream: ScriptedUpstream): Configuration => {
  upstream.script('m', { kind: 'whole', usage: usageText(10, 20) })
  return {
    options: { hold_wait: 0, token_stats: false },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [
      ROOT,
      user(2, 'ann', [token('ann', { remain_quota: AMPLE }), token('small', { remain_quota: 10 })], {
        quota: 0,
        unlimited_quota: true,
        access_token: ANN.accessToken,
      }),
      user(3, 'adam', [], { role: 10, access_token: OTHER.accessToken }),
    ],
  }
}

/** The addresses of the gateways of one database. */
const SITES: readonly (readonly [name: string, start: () => Promise<readonly string[]>])[] = [
  [
    'one node',
    async () => {
      const fixture = await startFixture(configure)
      onTestFinished(() => fixture.close())
      return [fixture.gateway.url]
    },
  ],
  ...SHARED.map(
    (engine) =>
      [
        `two nodes on ${engine.name}`,
        async () => {
          const { gateways } = await setNodes(engine, 2, configure, { program: patientProgram })
          return gateways.map(({ url }) => url)
        },
      ] as const,
  ),
]

describe.each(SITES)('an unlimited user on %s', (_, start) => {
  test('is charged and never refused for the balance, but for a budget, and for the balance once it is limited', async () => {
    const urls = await start()
    const [first = ''] = urls
    const calls = (key = 'ann') =>
      Promise.all(urls.map((url) => call(url, ask('m', { max_tokens: 1000 }), { key })))
    const put = async (fields: object, by = ADMIN) =>
      (await manage(first, by, 'PUT /api/user/', { id: 2, ...fields })).status
    const profile = async () => (await manage<Record<string, unknown>>(first, ANN, 'GET /api/user/self')).data

    for (const answer of await calls()) expect(answer.status, answer.text).toBe(200)
    await expect
      .poll(profile)
      .toMatchObject({ unlimited_quota: true, quota: -COST * urls.length, used_quota: COST * urls.length })
    const billing = await call(first, undefined, {
      method: 'GET',
      path: '/v1/dashboard/billing/subscription',
      key: 'small',
    })
    expect(billing.json()).toMatchObject({ hard_limit_usd: 100_000_000 })
    for (const answer of await calls('small'))
      expect(answer.json()).toMatchObject({ error: { code: 'insufficient_quota' } })

    expect(await put({ budget: 50, budget_period: 'day' })).toBe(200)
    // Other nodes receive a change later.
    await expect
      .poll(async () => (await calls()).map((answer) => answer.json().error?.code))
      .toEqual(urls.map(() => 'budget_exceeded'))
    expect(await put({ budget: 0 })).toBe(200)

    expect(await put({ unlimited_quota: false })).toBe(200)
    await expect
      .poll(async () => (await calls()).map((answer) => answer.json().error?.code))
      .toEqual(urls.map(() => 'insufficient_quota'))
    expect(await put({ unlimited_quota: true }, OTHER)).toBe(200)
    await expect.poll(async () => (await calls()).map(({ status }) => status)).toEqual(urls.map(() => 200))
  })
})

test('an administrator cannot make the own user unlimited; a user cannot either', async () => {
  const fixture = await startFixture(configure)
  onTestFinished(() => fixture.close())
  const { url } = fixture.gateway
  for (const { id, accessToken } of [OTHER, ANN]) {
    const { status } = await manage(url, { id, accessToken }, 'PUT /api/user/', { id, unlimited_quota: true })
    expect(status).toBe(403)
  }
  await manage(url, OTHER, 'PUT /api/user/self', { unlimited_quota: true })
  const { data } = await manage<{ unlimited_quota: boolean }>(url, OTHER, 'GET /api/user/self')
  expect(data.unlimited_quota).toBe(false)
})
