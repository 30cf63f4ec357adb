import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const ADA = { id: 4, accessToken: 'the-access-token-of-ada' }

interface Series {
  readonly slots: readonly number[]
  readonly series: readonly {
    readonly key: string
    readonly label: string
    readonly points: readonly Record<string, number>[]
    readonly calls: readonly number[]
  }[]
  readonly totals: Record<string, number>
  readonly latency: readonly Record<string, number | null>[]
  readonly exact: boolean
  readonly total: number
}

let fixture: Fixture
let charged = 0
const statuses: number[] = []

beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0, window: '1s' } },
    models: priced(['m', 'n']),
    channels: [channel('m', upstream.baseUrl('m')), channel('n', upstream.baseUrl('n'))],
    users: [
      ROOT,
      user(2, 'ann', [token('ann'), token('poor', { remain_quota: 0 })], { access_token: ANN.accessToken }),
      user(3, 'ben', [token('ben')]),
      user(4, 'ada', [], { access_token: ADA.accessToken, role: 10 }),
    ],
  }))
  for (const [key, model] of [
    ['ann', 'm'],
    ['ann', 'n'],
    ['ben', 'm'],
  ] as const) {
    fixture.upstream.script(model, { kind: 'whole', usage: usageText(100, 50, 40) })
    statuses.push((await fixture.chat(key, ask(model))).status)
  }
  fixture.upstream.script('m', { kind: 'status', status: 400, body: '{}' })
  await fixture.chat('ann', ask('m'))
  // A call that was answered with an error is settled a moment later.
  const logged = async () =>
    (await manage<{ total: number }>(fixture.gateway.url, ADA, 'GET /api/log/')).data.total
  await vi.waitUntil(async () => (await logged()) === 4, { timeout: 60_000 })
  for (const [key, model] of [
    ['ann', 'unheard-of'],
    ['nobodys', 'm'],
  ] as const)
    statuses.push((await fixture.chat(key, ask(model))).status)
  const rows = await manage<{ quota: number }>(fixture.gateway.url, ADA, 'GET /api/log/stat')
  charged = rows.data.quota
})
afterAll(() => fixture?.close())

const get = async (account: typeof ANN, path: `/${string}`): Promise<Series> => {
  const { status, data } = await manage<Series>(fixture.gateway.url, account, `GET ${path}`)
  expect(status).toBe(200)
  return data
}

const file = (account: typeof ANN, path: string) =>
  call(fixture.gateway.url, undefined, {
    method: 'GET',
    path,
    headers: { authorization: account.accessToken, 'gateway-user': String(account.id) },
  })

const sum = (line: Series['series'][number] | undefined, field: string): number =>
  (line?.points ?? []).reduce((total, point) => total + (point[field] ?? 0), 0)

describe('a series of usage', () => {
  test('a usage series for admins has the calls of all users, with exactly the sums of the call log', async () => {
    expect(statuses).toEqual([200, 200, 200, 503, 401])
    const series = await get(ADA, '/api/usage?by=user&tz=Asia/Kolkata')
    expect(series.series.map(({ key, label }) => [key, label])).toEqual([
      ['2', 'ann'],
      ['3', 'ben'],
    ])
    expect(series.totals).toMatchObject({
      requests: 3,
      failed: 1,
      quota: charged,
      input: 180,
      cached: 120,
      output: 150,
    })
    expect(series.exact).toBe(true)
    expect(sum(series.series[0], 'requests')).toBe(2)
    expect(series.latency.filter(({ p95_ms }) => p95_ms !== null)).toHaveLength(1)
  })

  test('a usage series of an account has only its own calls, and cannot be grouped by user or channel', async () => {
    const own = await get(ANN, '/api/usage/self?by=model&step=hour')
    expect(own.totals['requests']).toBe(2)
    expect(own.series.map(({ key }) => key).toSorted()).toEqual(['m', 'n'])
    for (const by of ['user', 'channel'])
      expect((await file(ANN, `/api/usage/self?by=${by}`)).status).toBe(400)
    expect((await get(ANN, '/api/usage/self?username=ben')).totals['requests']).toBe(2)
  })

  test('a usage series can be downloaded as CSV with a column for each field of a point, the cost in dollars, and a total for each series', async () => {
    const { status, headers, text } = await file(ADA, '/api/usage?by=model&top=1&format=csv')
    expect(status).toBe(200)
    expect(headers['content-type']).toContain('text/csv')
    const [head, ...lines] = text.trimEnd().split('\r\n')
    expect(head).toBe(
      'slot,start,key,label,requests,failed,quota,input,cached,cache_write,output,reasoning,cache_saved,cache_surcharge,hits,hit_saved,cost_usd',
    )
    const cells = lines.map((line) => line.split(','))
    expect(new Set(cells.map((line) => line[3]))).toEqual(new Set(['m', 'other']))
    const sums = (rows: string[][], column: number): number =>
      rows.reduce((sum, row) => sum + Number(row[column]), 0)
    const [totals, slots] = [cells.filter((row) => row[1] === 'total'), cells.filter((row) => row[0] !== '')]
    expect(totals.map(([slot, , , label]) => [slot, label])).toEqual([
      ['', 'm'],
      ['', 'other'],
    ])
    expect(slots.length + totals.length).toBe(cells.length)
    for (const total of totals) {
      const own = slots.filter((row) => row[3] === total[3])
      for (let column = 4; column < 16; column++) expect(sums(own, column)).toBe(Number(total[column]))
      // 500,000 quota units are one dollar.
      expect(Number(total[16])).toBe(Number(total[6]) / 500_000)
    }
    expect(sums(slots, 6)).toBe(charged)
  })

  test.each([
    'top=21',
    'by=colour',
    'step=week',
    'tz=Mars/Olympus',
    'from=99999999999',
    'from=1000&to=1000',
    'step=hour&from=1000&to=99999999',
    'format=xml',
  ])('a usage series with an invalid parameter is a 400: %s', async (query) => {
    expect((await file(ADA, `/api/usage?${query}`)).status).toBe(400)
  })
})

describe('refused calls', () => {
  test('the series of refused calls counts them by error code or user, and calls without a valid key at an empty user name', async () => {
    await vi.waitUntil(async () => (await get(ADA, '/api/usage/refusals')).total === 2, 60_000)
    const { series } = await get(ADA, '/api/usage/refusals?step=day')
    expect(series.map(({ key }) => key).toSorted()).toEqual(['invalid_api_key', 'model_not_found'])
    const byUser = await get(ADA, '/api/usage/refusals?by=user&top=20')
    expect(byUser.series.map(({ key, label }) => [key, label])).toEqual([
      ['0', ''],
      ['2', 'ann'],
    ])
    expect((await get(ANN, '/api/usage/self/refusals')).total).toBe(1)
    expect((await get(ADA, '/api/usage/refusals?code=rate_limited')).total).toBe(0)
    expect((await file(ADA, '/api/usage/refusals?format=csv')).text).toContain('invalid_api_key')
  })
})

test.each(['/api/usage', '/api/usage/refusals'] as const)(
  'a usage series for all users is open to administrators only: %s',
  async (path) => {
    expect((await manage(fixture.gateway.url, ANN, `GET ${path}`)).status).toBe(403)
    expect((await manage(fixture.gateway.url, { id: 2, accessToken: 'wrong' }, `GET ${path}`)).status).toBe(
      401,
    )
    expect((await file(ADA, path)).status).toBe(200)
  },
)

test.each(['/api/usage/self', '/api/usage/self/refusals'] as const)(
  "a usage series of one's own calls is open to every account: %s",
  async (path) => {
    expect((await file(ANN, path)).status).toBe(200)
    expect((await file({ ...ANN, accessToken: 'sk-ann' }, path)).status).toBe(401)
  },
)
