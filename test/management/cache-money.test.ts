import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { ADMIN, ADMIN_USER, channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
/** Quota units of a token: 5 as input, 0.5 read, 6.25 written for 5 minutes and 10 for an hour; times 1.5 in `us`. */
const price = {
  input: 10,
  output: 8,
  cache_read: 1,
  cache_write_5m: 12.5,
  cache_write_1h: 20,
  regions: { us: 1.5 },
}
const SUMS = { cache_saved: 675, cache_surcharge: 713 }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: { claude: { price } },
    channels: [channel('claude', upstream.baseUrl('claude'), { protocol: 'messages' })],
    users: [ROOT, user(2, 'ann', [token('ann')], { access_token: ANN.accessToken }), ADMIN_USER],
  }))
  const counts = {
    input_tokens: 10,
    output_tokens: 10,
    cache_read_input_tokens: 100,
    cache_creation_input_tokens: 140,
    cache_creation: { ephemeral_5m_input_tokens: 60, ephemeral_1h_input_tokens: 80 },
    inference_geo: 'us',
  }
  fixture.upstream.script('claude', wholeMessage([{ text: 'said' }], { counts }))
  await fixture.chat('ann', ask('claude'))
})
afterAll(() => fixture?.close())

interface Money {
  readonly cache_saved: number
  readonly cache_surcharge: number
}

// Saved: 100 × (5 − 0.5) × 1.5 = 675. Surcharge: (60 × 1.25 + 80 × 5) × 1.5 = 712.5.
describe('what a prompt cache saved and cost', () => {
  test.each([
    ['/api/log/', ADMIN],
    ['/api/log/self', ANN],
  ] as const)('%s states both at the region of the call, rounded once', async (path, who) => {
    const { data } = await manage<{ items: Money[] }>(fixture.gateway.url, who, `GET ${path}`)
    expect(data.items).toEqual([expect.objectContaining(SUMS)])
  })

  test.each([
    ['/api/usage', ADMIN],
    ['/api/usage/self', ANN],
  ] as const)('%s sums both', async (path, who) => {
    const { data } = await manage<{ totals: Money }>(fixture.gateway.url, who, `GET ${path}`)
    expect(data.totals).toMatchObject(SUMS)
  })
})
