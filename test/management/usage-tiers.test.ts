import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { ADMIN, ADMIN_USER, channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
/** Quota units: 1 for a prompt token, 4 for an output token. */
const price = { input: 2, output: 8, service: { fast: 2 }, regions: { us: 1.5 } }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: { m: { price }, claude: { price } },
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('claude', upstream.baseUrl('claude'), { protocol: 'messages' }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')], { access_token: ANN.accessToken }), ADMIN_USER],
  }))
  const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 }
  const choices = [{ index: 0, message: { role: 'assistant', content: 'said' }, finish_reason: 'stop' }]
  for (const tier of ['default', 'priority', 'priority']) {
    const answer = { id: 'c', object: 'chat.completion', created: 7, model: 'm', choices, usage }
    fixture.upstream.script('m', { kind: 'whole', body: JSON.stringify({ ...answer, service_tier: tier }) })
    await fixture.chat('ann', ask('m'))
  }
  const counts = { input_tokens: 100, output_tokens: 10, inference_geo: 'us' }
  fixture.upstream.script('claude', wholeMessage([{ text: 'said' }], { counts }))
  await fixture.chat('ann', ask('claude'))
})
afterAll(() => fixture?.close())

interface Series {
  readonly series: readonly { key: string; label: string; points: { requests: number; quota: number }[] }[]
  readonly totals: { readonly requests: number; readonly quota: number }
}

/** The calls and charges of each value of a dimension, highest charge first. */
async function series(query: string, path: `/${string}` = '/api/usage', who = ADMIN) {
  const { data, status, message } = await manage<Series>(fixture.gateway.url, who, `GET ${path}?${query}`)
  expect([status, message]).toEqual([200, ''])
  const sum = (points: Series['series'][number]['points'], field: 'requests' | 'quota') =>
    points.reduce((total, point) => total + point[field], 0)
  return data.series.map(({ key, points }) => [key, sum(points, 'requests'), sum(points, 'quota')])
}

const log = async (query: string, path: `/${string}` = '/api/log/') => {
  const { data } = await manage<{ total: number; items: { service_tier: string; region: string }[] }>(
    fixture.gateway.url,
    ADMIN,
    `GET ${path}?${query}`,
  )
  return data.items.map(({ service_tier: tier, region }) => [tier, region])
}

describe('usage by tier and region', () => {
  test.each(['/api/usage', '/api/usage/self'] as const)(
    'a usage endpoint can group usage by the service tier and the region that served the calls: %s',
    async (path) => {
      const who = path.endsWith('self') ? ANN : ADMIN
      expect(await series('by=service_tier&step=hour', path, who)).toEqual([
        ['fast', 2, 560],
        ['standard', 2, 140 + 210],
      ])
      expect(await series('by=region', path, who)).toEqual([
        ['', 3, 700],
        ['us', 1, 210],
      ])
    },
  )

  test('a usage series can be filtered by service tier, under any of its names, and by region', async () => {
    expect(await series('by=model&service_tier=priority')).toEqual([['m', 2, 560]])
    expect(await series('by=model&service_tier=default&region=us')).toEqual([['claude', 1, 210]])
    expect(await series('by=service_tier&channel=m')).toEqual([
      ['fast', 2, 560],
      ['standard', 1, 140],
    ])
  })

  test('the call log can be filtered by service tier and region, and suggests the values of both', async () => {
    expect(await log('service_tier=fast')).toEqual([
      ['fast', ''],
      ['fast', ''],
    ])
    expect(await log('service_tier=fast&service_tier=standard&region=us')).toEqual([['standard', 'us']])
    const values = async (field: string) =>
      (
        await manage<{ value: string; calls: number }[]>(
          fixture.gateway.url,
          ADMIN,
          `GET /api/log/values?field=${field}`,
        )
      ).data
    expect(await values('service_tier')).toMatchObject([
      { value: 'fast', calls: 2 },
      { value: 'standard', calls: 2 },
    ])
    expect(await values('region')).toMatchObject([{ value: 'us', calls: 1 }])
  })
})
