import { afterAll, beforeAll, expect, test } from 'vitest'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
let configure: (options: Record<string, unknown>) => Configuration
beforeAll(async () => {
  fixture = await startFixture((upstream) => {
    configure = (options) => ({
      options,
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [
        ROOT,
        user(2, 'ann', [token('ann', { remain_quota: 100 })]),
        user(3, 'new', [token('new')], { quota: 0 }),
      ],
    })
    return configure({})
  })
})
afterAll(() => fixture?.close())

/** 500,000 units are a dollar, and 7.3 yuan. */
test.each([
  ['USD', '$0.0002', '$'],
  ['CNY', '¥0.0014', '¥'],
])('an unaffordable call is refused with the amounts in units and in %s', async (display, left, sign) => {
  await fixture.gateway.apply(configure({ display, usd_exchange_rate: 7.3 }))
  // A million output tokens cost four million units, that is 8 dollars or 58.4 yuan, and the prompt a
  // little more.
  const answer = await fixture.chat('ann', ask('m', { max_tokens: 1_000_000 }))
  expect(answer.status).toBe(403)
  const { message } = answer.json().error
  expect(message).toMatch(/: 100 remain, 400\d{4} are needed/)
  expect(message).toContain(`(${left} of ${sign}${display === 'USD' ? '8.01' : '58.41'})`)
})

test('an unaffordable call is refused with amounts in quota units, without a currency, where the display is TOKENS', async () => {
  await fixture.gateway.apply(configure({ display: 'TOKENS' }))
  const answer = await fixture.chat('ann', ask('m', { max_tokens: 1000 }))
  expect(answer.json().error.message).toMatch(
    /: 100 remain, \d+ are needed; 0 are spent, 0 are held by calls under way; [^(]+ \(request id: /,
  )
})

test('the first call of a user without quota is refused with a message that says who can raise it', async () => {
  const user = await fixture.chat('new', ask('m'))
  expect([user.status, user.json().error.code]).toEqual([403, 'insufficient_quota'])
  expect(user.json().error.message).toMatch(
    /; an administrator of the gateway can raise the quota of this user \(request id: /,
  )
  const key = await fixture.chat('ann', ask('m', { max_tokens: 1000 }))
  expect(key.json().error.message).toMatch(
    /; whoever manages this API key, or an administrator of the gateway, can raise its quota \(request id: /,
  )
})
