import { expect, test } from 'vitest'
import { channel, priced, ROOT, token, user } from '../equipment/configuration.ts'
import { ask, startFixture } from '../equipment/fixture.ts'

/** 500,000 units are a dollar, and 7.3 yuan. */
test.each([
  ['USD', '$0.0002', '$'],
  ['CNY', '¥0.0014', '¥'],
])('an unaffordable call is refused with the amounts in units and in %s', async (display, left, sign) => {
  const fixture = await startFixture((upstream) => ({
    options: { display, usd_exchange_rate: 7.3 },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: 100 })])],
  }))
  try {
    // A million output tokens cost four million units, that is 8 dollars or 58.4 yuan, and the prompt a
    // little more.
    const answer = await fixture.chat('ann', ask('m', { max_tokens: 1_000_000 }))
    expect(answer.status).toBe(403)
    const { message } = answer.json().error
    expect(message).toMatch(/: 100 remain, 400\d{4} are needed/)
    expect(message).toContain(`(${left} of ${sign}${display === 'USD' ? '8.01' : '58.41'})`)
  } finally {
    await fixture.close()
  }
})

test('an unaffordable call is refused with units alone where units are displayed', async () => {
  const fixture = await startFixture((upstream) => ({
    options: { display: 'TOKENS' },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: 100 })])],
  }))
  try {
    const answer = await fixture.chat('ann', ask('m', { max_tokens: 1000 }))
    expect(answer.json().error.message).toMatch(/: 100 remain, \d+ are needed \(request id: /)
  } finally {
    await fixture.close()
  }
})
