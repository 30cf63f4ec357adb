import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway({
    config: {
      rate_limits: { critical: { requests: 3, window: '20m' } },
      users: [ROOT, user(2, 'ann', [token('ann')], { access_token: ANN.accessToken })],
    },
  })
})
afterAll(() => gateway.discard())

describe('GET /api/user/token', () => {
  test('GET /api/user/token issues a new access token in place of the old one, and forbids caching', async () => {
    const { status, data, headers } = await manage<string>(gateway.url, ANN, 'GET /api/user/token')
    expect([status, data]).toEqual([200, expect.stringMatching(/^[\w-]{43}$/)])
    expect(headers['cache-control']).toBe('no-store, no-cache, must-revalidate, private, max-age=0')
    expect((await manage(gateway.url, ANN, 'GET /api/user/self')).status).toBe(401)
    const renewed = { id: 2, accessToken: data }
    expect((await manage(gateway.url, renewed, 'GET /api/user/self')).status).toBe(200)
    expect(gateway.logs()).not.toContain(data)
    // Renewal is limited to three times in 20 minutes in this test.
    const second = await manage<string>(gateway.url, renewed, 'GET /api/user/token')
    const third = { id: 2, accessToken: second.data }
    const last = {
      id: 2,
      accessToken: (await manage<string>(gateway.url, third, 'GET /api/user/token')).data,
    }
    expect((await manage(gateway.url, last, 'GET /api/user/token')).status).toBe(429)
    expect((await manage(gateway.url, last, 'GET /api/user/self')).status).toBe(200)
  })

  test('GET /api/user/token is not available with an API key', async () => {
    const answer = await manage(gateway.url, { id: 2, accessToken: 'sk-ann' }, 'GET /api/user/token')
    expect(answer).toMatchObject({ status: 401, success: false, message: 'invalid access token' })
  })
})
