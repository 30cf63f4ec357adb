import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Account, manage } from '../fixtures/account.ts'
import { errorBody } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { AMPLE, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { logIn } from '../fixtures/console.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }
const ADA = { id: 2, accessToken: 'the-access-token-of-ada' }
const ANN = { id: 3, accessToken: 'the-access-token-of-ann' }
const CAM = { id: 4, accessToken: 'the-access-token-of-cam' }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 } },
    options: {
      retries: 0,
      quota_per_unit: 5000,
      display: 'CNY',
      usd_exchange_rate: 7.25,
      max_user_tokens: 9,
    },
    groups: { default: { ratio: 1 }, open: { ratio: 0.5 }, vip: { ratio: 2, open: false } },
    models: priced(['good', 'bad']),
    channels: ['good', 'bad'].map((name) => channel(name, upstream.baseUrl(name))),
    users: [
      ROOT,
      user(2, 'ada', [token('ada')], { access_token: ADA.accessToken, role: 10, group: 'vip' }),
      user(3, 'ann', [token('ann')], { access_token: ANN.accessToken }),
      user(4, 'cam', [], { access_token: CAM.accessToken }),
    ],
  }))
})
afterAll(() => fixture?.close())

interface Shell {
  readonly setup: object
  readonly counts: object
  readonly troubled_channels: object[] | null
}
const shell = (account: Account) => manage<Shell>(fixture.gateway.url, account, 'GET /api/console')

describe('GET /api/console', () => {
  test('GET /api/console returns what every page of the console needs, for every role', async () => {
    const { status, data } = await shell(ADA)
    expect(status).toBe(200)
    const profile = await manage(fixture.gateway.url, ADA, 'GET /api/user/self')
    expect(data).toEqual({
      user: profile.data,
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      node: expect.stringMatching(/-[0-9a-f]{8}$/),
      server_time: expect.any(Number),
      display: { kind: 'CNY', quota_per_unit: 5000, usd_exchange_rate: 7.25 },
      groups: {
        default: { ratio: 1, desc: 'default' },
        open: { ratio: 0.5, desc: 'open' },
        vip: { ratio: 2, desc: 'vip' },
      },
      limits: { max_user_tokens: 9, usage_log_days: expect.any(Number), slot_days: 100 },
      left: AMPLE,
      left_by: 'user',
      budgets: [],
      setup: { has_channel: true, has_own_key: true, has_call: false },
      counts: { resting_channels: 0 },
      recent_keys: [
        {
          id: expect.any(Number),
          name: 'token-ada',
          used_quota: 0,
          accessed_time: 0,
          budget: 0,
          budget_period: '',
          budget_used: 0,
          budget_held: 0,
          budget_resets_at: 0,
        },
      ],
      troubled_channels: [],
      incidents: [],
      refused_configuration: null,
    })
    expect((await shell(AS_ROOT)).data.counts).toEqual({ resting_channels: 0 })
    expect((await shell(ANN)).data).toMatchObject({
      user: { id: 3 },
      counts: { resting_channels: null },
      troubled_channels: null,
    })
    expect(Object.keys((await shell(ANN)).data)).toEqual(Object.keys(data))
    expect((await shell({ id: 3, accessToken: 'wrong' })).status).toBe(401)
  })

  test('GET /api/console returns to a reloaded page which user is signed in', async () => {
    const { cookie } = await logIn(fixture.gateway.url, { access_token: CAM.accessToken })
    const { text } = await call(fixture.gateway.url, undefined, {
      method: 'GET',
      path: '/api/console',
      headers: { cookie },
    })
    expect(JSON.parse(text)).toMatchObject({
      data: { user: { id: 4, username: 'cam' }, setup: { has_own_key: false } },
    })
  })

  test('GET /api/console tells a member whether the member has made a call, and an admin whether anybody has', async () => {
    fixture.upstream.script('good', { kind: 'whole' })
    expect((await fixture.chat('ann', ask('good'))).status).toBe(200)
    const hasCall = async (account: Account) => (await shell(account)).data.setup
    expect(await hasCall(ANN)).toMatchObject({ has_call: true })
    expect(await hasCall(ADA)).toMatchObject({ has_call: true })
    expect(await hasCall(CAM)).toMatchObject({ has_call: false })
  })

  test('GET /api/console names the failing channels, and counts the channels in cooldown', async () => {
    fixture.upstream.script('bad', { kind: 'status', status: 500, body: errorBody('no') })
    await fixture.chat('ann', ask('bad'))
    const bad = {
      id: expect.any(Number),
      name: 'bad',
      last_error: { at: expect.any(Number), cause: 'status 500' },
    }
    expect((await shell(ADA)).data).toMatchObject({
      counts: { resting_channels: 0 },
      troubled_channels: [{ ...bad, state: 'failing', rests_until: null }],
    })
    for (let n = 1; n < 5; n += 1) await fixture.chat('ann', ask('bad'))
    expect((await shell(ADA)).data).toMatchObject({
      troubled_channels: [{ ...bad, state: expect.stringMatching(/^(?:resting|probing)$/) }],
    })
    // The cooldown may be over before it is seen. Each failed trial doubles it.
    await vi.waitFor(
      async () => {
        await fixture.chat('ann', ask('bad'))
        expect((await shell(ADA)).data).toMatchObject({
          counts: { resting_channels: 1 },
          troubled_channels: [{ ...bad, state: 'resting', rests_until: expect.any(Number) }],
        })
      },
      { timeout: 60_000 },
    )
    expect((await shell(ANN)).data).toMatchObject({
      counts: { resting_channels: null },
      troubled_channels: null,
    })
  })
})
