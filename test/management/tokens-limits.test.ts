import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, manage } from '../fixtures/account.ts'
import { ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BOB = { id: 3, accessToken: 'the-access-token-of-bob' }

let gateway: RunningGateway
beforeAll(async () => {
  // Without a section rate_limits the defaults apply.
  gateway = await startGateway({
    config: {
      users: [
        ROOT,
        user(2, 'ann', [token('ofann')], { access_token: ANN.accessToken }),
        user(3, 'bob', [token('ofbob')], { access_token: BOB.accessToken }),
      ],
    },
  })
})
afterAll(() => gateway.discard())

const search = (account: Account) => manage(gateway.url, account, 'GET /api/token/search?keyword=x')

test('the eleventh search for tokens within a minute is a 429 with retry-after; other users are not affected', async () => {
  for (let nth = 1; nth <= 10; nth += 1) {
    const { status, headers } = await search(ANN)
    expect(status).toBe(200)
    expect(headers['ratelimit-limit']).toBe('10')
    expect(headers['ratelimit-remaining']).toBe(String(10 - nth))
  }
  const refused = await search(ANN)
  expect(refused).toMatchObject({ status: 429, success: false })
  expect(refused.message).toContain('try again')
  expect(refused.headers['ratelimit-limit']).toBe('10')
  expect(refused.headers['ratelimit-remaining']).toBe('0')
  expect(Number(refused.headers['ratelimit-reset'])).toBeGreaterThan(0)
  const wait = Number(refused.headers['retry-after'])
  expect(wait).toBeGreaterThan(0)
  expect(wait).toBeLessThanOrEqual(60)
  expect((await search(BOB)).status).toBe(200)
})

describe('the reveal limit', () => {
  test('the 21st request within 20 minutes to show API keys is a 429; other users and requests are not affected', async () => {
    const { id } = databaseOf(gateway.dataDir).token('token-ofann')
    const one = (account: Account) => manage(gateway.url, account, `POST /api/token/${id}/key`)
    const several = () => manage(gateway.url, ANN, 'POST /api/token/batch/keys', { ids: [id] })
    for (let nth = 1; nth <= 10; nth += 1) {
      expect((await one(ANN)).status).toBe(200)
      const { status, headers } = await several()
      expect([status, headers['ratelimit-limit']]).toEqual([200, '20'])
      expect(headers['ratelimit-remaining']).toBe(String(20 - 2 * nth))
    }
    for (const refused of [await one(ANN), await several()]) {
      expect(refused).toMatchObject({ status: 429, success: false })
      expect(refused.body).not.toHaveProperty('data')
      expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(20 * 60)
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
      expect(refused.headers['ratelimit-remaining']).toBe('0')
    }
    // The token is not Bob's, but his request is within his own limit.
    expect((await one(BOB)).status).toBe(404)
    expect((await manage(gateway.url, ANN, 'GET /api/token/')).status).toBe(200)
  })
})
