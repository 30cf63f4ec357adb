import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { databaseOf } from '../fixtures/database.ts'
import { channel, priced, ROOT, token } from '../fixtures/configuration.ts'
import { askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }
const FIELDS = { duration_ms: ['p50_ms', 'p95_ms'], first_byte_ms: ['first_p50_ms', 'first_p95_ms'] } as const

type Rows = readonly Readonly<Record<keyof typeof FIELDS, number>>[]
type Latency = Readonly<Record<(typeof FIELDS)[keyof typeof FIELDS][number], number | null>>

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0, window: '1s' } },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [{ ...ROOT, tokens: [token('root')] }],
  }))
})
afterAll(() => fixture?.close())

async function get<Data>(path: `/${string}`): Promise<Data> {
  const { status, data } = await manage<Data>(fixture.gateway.url, AS_ROOT, `GET ${path}`)
  expect(status).toBe(200)
  return data
}

test('the latencies in a usage series are those of its calls, to within a tenth', async () => {
  for (const paceMs of [10, 20, 30, 45, 60, 80, 120]) {
    fixture.upstream.script('m', { kind: 'stream', events: 5, paceMs })
    await fixture.chat('root', askStream('m'))
  }
  await expect.poll(async () => (await get<{ total: number }>('/api/log/')).total).toBe(7)
  const { items } = await get<{ items: Rows }>('/api/log/?page_size=100')
  const latencies = async (path: `/${string}`): Promise<readonly Latency[]> =>
    (await get<{ latency: readonly Latency[] }>(path)).latency
  const latency = await latencies('/api/usage?step=month')
  const shown = latency.at(-1)
  // Those of one user or key come from the rows.
  const ofOne = ['/api/usage/self?step=month', '/api/usage?step=month&token_name=token-root'] as const
  for (const path of ofOne) expect(await latencies(path), path).toEqual(latency)
  for (const [field, names] of Object.entries(FIELDS) as [
    keyof typeof FIELDS,
    readonly (keyof Latency)[],
  ][]) {
    const sorted = items.map((row) => row[field]).toSorted((one, other) => one - other)
    for (const [index, share] of [0.5, 0.95].entries()) {
      const exact = sorted[Math.ceil(share * sorted.length) - 1] ?? 0
      const name = names[index] ?? 'p50_ms'
      // Buckets begin at 16 ms.
      if (exact < 16) expect(shown?.[name]).toBeLessThan(16)
      else
        expect(Math.abs((shown?.[name] ?? 0) - exact), `${name} of ${exact} ms`).toBeLessThanOrEqual(
          exact / 10,
        )
    }
  }
})

test('the latencies and causes of one user or key are null once rows of its calls are removed, those of all stay', async () => {
  fixture.upstream.script('m', { kind: 'status', status: 400, body: '{}' })
  await fixture.chat('root', askStream('m'))
  // A call that was answered with an error is settled a moment later.
  const failed = '/api/log/?cause=provider_refused'
  await expect.poll(async () => (await get<{ total: number }>(failed)).total).toBe(1)
  const paths = ['/api/usage?step=month', '/api/usage/self?step=month'] as const
  const last = async <Item>(
    path: `/${string}`,
    of: (data: never) => readonly Item[],
  ): Promise<Item | undefined> => of(await get<never>(path)).at(-1)
  const latencyOf = (path: `/${string}`) =>
    last(path, ({ latency }: { latency: readonly Latency[] }) => latency)
  const before = await latencyOf(paths[0])
  databaseOf(fixture.gateway.dataDir).write("delete from usage_log where reason = 'complete'")
  expect(await latencyOf(paths[0])).toEqual(before)
  expect(await latencyOf(paths[1])).toEqual({
    p50_ms: null,
    p95_ms: null,
    first_p50_ms: null,
    first_p95_ms: null,
  })
  databaseOf(fixture.gateway.dataDir).write('delete from usage_log')
  interface Causes {
    readonly series: readonly { readonly key: string; readonly calls: readonly (number | null)[] }[]
    readonly other: { readonly calls: readonly number[] } | null
    readonly total: number
  }
  const all = await get<Causes>('/api/usage/failures?by=cause&step=month')
  expect(all.series.map(({ key }) => key)).toEqual(['provider_refused'])
  const own = await get<Causes>('/api/usage/self/failures?by=cause&step=month')
  expect(own).toMatchObject({ series: [], total: 1 })
  expect(own.other?.calls.at(-1)).toBe(1)
})
