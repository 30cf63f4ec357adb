import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Account, manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const ADA = { id: 4, accessToken: 'the-access-token-of-ada' }
const MODELS = ['claude-one', 'claude-two', 'gpt', 'cut']

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0, window: '1s' } },
    models: priced(MODELS),
    channels: MODELS.map((model) => channel(model, upstream.baseUrl('any'))),
    users: [
      ROOT,
      user(2, 'ann', [token('ann'), token('second')], { access_token: ANN.accessToken }),
      user(3, 'ben', [token('ben')]),
      user(4, 'ada', [], { access_token: ADA.accessToken, role: 10 }),
    ],
  }))
  for (const [key, model, tokens] of [
    ['ann', 'claude-one', 3000],
    ['ann', 'claude-one', 1000],
    ['second', 'claude-two', 2000],
    ['ben', 'gpt', 4000],
  ] as const) {
    fixture.upstream.script('any', { kind: 'whole', usage: usageText(tokens, 1) })
    await fixture.chat(key, ask(model))
  }
})
afterAll(() => fixture?.close())

interface Row {
  readonly id: string
  readonly model_name: string
  readonly quota: number
  readonly duration_ms: number
  readonly first_byte_ms: number
}
interface Value {
  readonly value: string
  readonly label: string
  readonly calls: number
}

async function get<Data>(account: Account, path: `/${string}`): Promise<Data> {
  const { status, data } = await manage<Data>(fixture.gateway.url, account, `GET ${path}`)
  expect(status, path).toBe(200)
  return data
}
const rows = async (account: Account, query: string): Promise<readonly Row[]> =>
  (await get<{ items: Row[] }>(account, `/api/log/${account === ADA ? '' : 'self'}${query}`)).items

describe('filters of logs and usage', () => {
  test('the values of a log field can be searched by part of a name in either letter case; those with most calls come first', async () => {
    expect(await get<Value[]>(ADA, '/api/log/values?field=model&q=CLA')).toEqual([
      { value: 'claude-one', label: 'claude-one', calls: 2 },
      { value: 'claude-two', label: 'claude-two', calls: 1 },
    ])
    const keys = await get<Value[]>(ADA, '/api/log/values?field=token')
    expect(keys.map(({ label, calls }) => [label, calls])).toEqual([
      ['ann / token-ann', 2],
      ['ann / token-second', 1],
      ['ben / token-ben', 1],
    ])
    const own = await get<Value[]>(ANN, '/api/log/self/values?field=token&q=SECOND')
    expect(own.map(({ label }) => label)).toEqual(['token-second'])
    const users = await get<Value[]>(ADA, '/api/log/values?field=user')
    expect(users.map(({ value, label }) => [value, label])).toEqual([
      ['2', 'ann'],
      ['3', 'ben'],
    ])
    expect(await get(ADA, '/api/log/values?field=model&end_timestamp=1000')).toEqual([])
    for (const path of ['/api/log/self/values?field=user', '/api/log/self/values?field=bad'])
      expect((await manage(fixture.gateway.url, ANN, `GET ${path as `/${string}`}`)).status).toBe(400)
  })

  test('a filter of the call log may be repeated, and then selects calls that match any of its values', async () => {
    const models = async (query: string): Promise<string[]> =>
      (await rows(ADA, query)).map(({ model_name }) => model_name).toSorted()
    expect(await models('?model_name=gpt&model_name=claude-two')).toEqual(['claude-two', 'gpt'])
    expect(await models('?user_id=3&user_id=4')).toEqual(['gpt'])
    expect(await models('?user_id=2&user_id=3&model_name=gpt')).toEqual(['gpt'])
    expect(await models('?username=ann&username=ben&channel=claude-two&channel=gpt')).toEqual([
      'claude-two',
      'gpt',
    ])
    const [key] = await get<Value[]>(ANN, '/api/log/self/values?field=token&q=second')
    expect((await rows(ANN, `?token_id=${key?.value}`)).map(({ model_name }) => model_name)).toEqual([
      'claude-two',
    ])
    const { totals } = await get<{ totals: { requests: number } }>(
      ADA,
      '/api/usage?model_name=gpt&model_name=claude-one&user_id=2&user_id=3',
    )
    expect(totals.requests).toBe(3)
  })

  test('the call log and its sums can be filtered by reasons of cache misses; an unknown reason is a 400', async () => {
    expect(await rows(ADA, '?cache_break=key_moved&cache_break=provider')).toEqual([])
    const { requests } = await get<{ requests: number }>(ADA, '/api/log/stat?cache_break=key_moved')
    expect(requests).toBe(0)
    for (const path of ['/api/log/self?cache_break=moved', '/api/log/export?cache_break=moved'] as const) {
      const { status, message } = await manage(fixture.gateway.url, ADA, `GET ${path}`)
      expect([status, message]).toEqual([400, expect.stringContaining('channel_moved, key_moved')])
    }
  })

  test('the CSV file of calls has the time in the chosen zone, the cost in USD, status and cause, and a file name', async () => {
    const headers = { authorization: ADA.accessToken, 'gateway-user': String(ADA.id) }
    const file = async (query: string) =>
      call(fixture.gateway.url, undefined, { method: 'GET', path: `/api/log/export${query}`, headers })
    const { text, headers: got } = await file('?tz=Asia/Kolkata')
    const [head = '', ...lines] = text.trim().split('\r\n')
    const names = head.split(',')
    const column = (name: string): string[] => lines.map((line) => line.split(',')[names.indexOf(name)] ?? '')
    for (const [index, time] of column('time').entries()) {
      expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+05:30$/)
      expect(Date.parse(time) / 1000).toBe(Number(column('created_at')[index]))
    }
    expect(column('status')).toEqual(Array.from({ length: 4 }, () => 'Complete'))
    expect(column('cause')).toEqual(['', '', '', ''])
    const quota = column('quota').reduce((sum, one) => sum + Number(one), 0)
    expect(column('cost_usd').reduce((sum, one) => sum + Number(one), 0)).toBeCloseTo(quota / 500_000, 10)
    expect((await get<{ quota: number }>(ADA, '/api/log/stat')).quota).toBe(quota)
    expect(got['content-disposition']).toBe('attachment; filename="sluice-calls.csv"')
    const named = async (from: string, to: string, tz = 'UTC', zone = 'Z'): Promise<unknown> => {
      const [start, end] = [from, to].map((text) => Date.parse(`${text}${zone}`) / 1000)
      const { headers: of } = await file(`?tz=${tz}&start_timestamp=${start}&end_timestamp=${end}`)
      return of['content-disposition']
    }
    expect(await named('2026-11-01T00:00:00', '2026-11-30T23:59:59')).toContain('"sluice-calls-2026-11.csv"')
    expect(await named('2026-11-01T00:00:00', '2026-11-23T23:59:59')).toContain(
      '"sluice-calls-2026-11-01_2026-11-23.csv"',
    )
    expect(await named('2026-11-01T00:00:00', '2026-11-30T23:59:59', 'Asia/Kolkata', '+05:30')).toContain(
      '"sluice-calls-2026-11.csv"',
    )
    expect((await file('?tz=Nowhere')).status).toBe(400)
  })

  test('the call log is sorted over all pages, and equal rows are sorted by their ids', async () => {
    const all = await rows(ADA, '?sort=quota&order=asc')
    const quotas = all.map(({ quota }) => quota)
    expect(quotas).toEqual(quotas.toSorted((one, two) => one - two))
    expect(new Set(quotas).size).toBe(4)
    const pages = await Promise.all(
      [1, 2].map((page) => rows(ADA, `?sort=quota&order=desc&page_size=2&p=${page}`)),
    )
    expect(pages.flat().map(({ id }) => id)).toEqual(all.map(({ id }) => id).toReversed())
    for (const field of ['duration_ms', 'first_byte_ms'] as const) {
      const sorted = await rows(ADA, `?sort=${field}&order=asc`)
      const keys = sorted.map((row) => `${String(row[field]).padStart(9, '0')} ${row.id}`)
      expect(keys, field).toEqual(keys.toSorted())
      const falling = await rows(ADA, `?sort=${field}&order=desc`)
      expect(
        falling.map(({ id }) => id),
        field,
      ).toEqual(sorted.map(({ id }) => id).toReversed())
    }
    const oldest = await rows(ADA, '?sort=created_at&order=asc')
    expect(oldest.map(({ id }) => id)).toEqual((await rows(ADA, '')).map(({ id }) => id).toReversed())
    expect((await manage(fixture.gateway.url, ADA, 'GET /api/log/?sort=name')).status).toBe(400)
  })

  test('the numbers of calls at suggested filter values have each failed call once, whether or not part of its answer arrived', async () => {
    fixture.upstream.script('any', { kind: 'stream', events: 3, ending: 'reset' })
    await fixture.chat('ann', askStream('cut'))
    fixture.upstream.script('any', { kind: 'status', status: 400, body: '{}' })
    await fixture.chat('ann', ask('cut'))
    await vi.waitFor(
      async () =>
        expect(await get<Value[]>(ADA, '/api/log/values?field=model&q=cut')).toEqual([
          { value: 'cut', label: 'cut', calls: 2 },
        ]),
      60_000,
    )
  })

  test('a usage series by model has the top models by each requested figure, such as quota, with their rank in each', async () => {
    const series = async (query: string) =>
      (
        await get<{ series: { key: string; ranks: object }[]; other: object | null }>(
          ADA,
          `/api/usage?by=model&${query}`,
        )
      ).series.map(({ key, ranks }) => [key, ranks])
    expect(await series('top=1')).toEqual([['claude-one', { quota: 1 }]])
    expect(await series('top=1&rank=failed')).toEqual([['cut', { failed: 1 }]])
    expect(await series('top=1&rank=quota,requests,failed')).toEqual([
      ['claude-one', { quota: 1, requests: 1, failed: null }],
      ['cut', { quota: null, requests: null, failed: 1 }],
    ])
    expect(await series('top=2&rank=tokens')).toEqual([
      ['claude-one', { tokens: 1 }],
      ['gpt', { tokens: 2 }],
    ])
    expect((await manage(fixture.gateway.url, ADA, 'GET /api/usage?rank=calls')).status).toBe(400)
  })

  test('a usage series by key has the names of user and key for administrators, and that of the key for its holder', async () => {
    const labels = async (account: Account, path: string): Promise<string[]> =>
      (await get<{ series: { label: string }[] }>(account, `/api/usage${path}`)).series.map(
        ({ label }) => label,
      )
    expect(await labels(ADA, '?by=token&user_id=2')).toEqual(['ann / token-ann', 'ann / token-second'])
    expect(await labels(ANN, '/self?by=token')).toEqual(['token-ann', 'token-second'])
    const failed = await get<{ series: { label: string }[] }>(ADA, '/api/usage/failures?by=token')
    expect(failed.series.map(({ label }) => label)).toEqual(['ann / token-ann'])
  })
})
