import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { type DemoFixture, startDemoFixture } from '../fixtures/demo-fixture.ts'

type Fields = Record<string, unknown>

const ROOT_ACCOUNT = { id: 1, accessToken: 'root-access-token' }

let demo: DemoFixture
beforeAll(async () => {
  demo = await startDemoFixture()
})
afterAll(() => demo?.close())

const MODELS = [
  'demo-chat',
  'demo-claude',
  'demo-responses',
  'demo-gemini',
  'demo-bedrock-claude',
  'demo-bedrock-nova',
]

/** The row of a chat call to a model with this text. */
async function row(model: string, text: string, fields: Fields = {}): Promise<Fields> {
  const body = { model, max_tokens: 20, messages: [{ role: 'user', content: text }], ...fields }
  const { status, headers, text: answered } = await call(demo.gateway.url, body, { key: 'ann' })
  expect(status, answered).toBe(200)
  const { data } = await manage<Fields>(
    demo.gateway.url,
    ROOT_ACCOUNT,
    `GET /api/log/${String(headers['x-request-id'])}`,
  )
  return data
}

describe('the demo', () => {
  test.each(MODELS)(
    'the simulated provider can serve another service tier than the requested one, whole and streamed: %s',
    async (model) => {
      const isMessages = model === 'demo-claude'
      for (const stream of [false, true]) {
        const fields = { stream, service_tier: isMessages ? undefined : 'flex' }
        expect(await row(model, 'Hello, simulate(tier=fast)', fields)).toMatchObject({
          service_tier: 'fast',
          price_incomplete: false,
        })
      }
    },
  )

  test.each(MODELS.filter((model) => model !== 'demo-claude'))(
    'the simulated provider serves the requested service tier: %s',
    async (model) => {
      expect(await row(model, 'Hello', { service_tier: 'flex' })).toMatchObject({
        requested_service_tier: 'flex',
        service_tier: 'flex',
      })
    },
  )

  test('a call is priced by the trafficType that Gemini states; provisioned throughput costs nothing', async () => {
    expect(await row('demo-gemini', 'simulate(traffic, tier=flex)')).toMatchObject({ service_tier: 'flex' })
    expect(await row('demo-gemini', 'simulate(tier=provisioned)')).toMatchObject({
      service_tier: 'provisioned',
      quota: 0,
    })
    expect(await row('demo-gemini', 'simulate(tier=offpeak)')).toMatchObject({
      service_tier: 'offpeak',
      price_incomplete: true,
    })
  })

  test('the simulated messages provider can state a region, and simulated Bedrock models can state reserved capacity', async () => {
    expect(await row('demo-claude', 'simulate(region=us)')).toMatchObject({ region: 'us' })
    for (const model of ['demo-bedrock-claude', 'demo-bedrock-nova'])
      expect(await row(model, 'simulate(tier=reserved)')).toMatchObject({ service_tier: 'reserved' })
  })

  test('the simulated providers report cache writes of every lifetime', async () => {
    const long = `${'A lighthouse stands on a rock. '.repeat(40)} `
    for (const model of ['demo-chat', 'demo-responses'])
      expect(await row(model, `${long}simulate(write_30m=30, write_12h=12)`)).toMatchObject({
        cache_write_30m_tokens: 30,
        cache_write_12h_tokens: 12,
      })
    for (const model of ['demo-claude', 'demo-bedrock-nova'])
      expect(await row(model, `${long}simulate(write_5m=5, write_1h=7)`)).toMatchObject({
        cache_write_5m_tokens: 5,
        cache_write_1h_tokens: 7,
      })
  })
})
