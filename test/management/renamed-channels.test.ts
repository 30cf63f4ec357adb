import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }

interface Series {
  readonly series: readonly {
    readonly key: string
    readonly label: string
    readonly points: readonly { readonly requests: number }[]
  }[]
}
interface Rows {
  readonly items: readonly { readonly channel: string; readonly channel_id: number }[]
}

let fixture: Fixture
let id = 0
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, media: { allow_private_networks: true } },
    rate_limits: { global: { requests: 0, window: '1s' } },
    models: priced(['m', 'filed']),
    channels: [channel('filed', upstream.baseUrl('any'))],
    users: [{ ...ROOT, tokens: [token('root')] }],
  }))
  await send('POST /api/channel/', { mode: 'single', channel: stored('first name') })
  const { items } = await send<{ items: { id: number; name: string }[] }>('GET /api/channel/')
  id = items.find(({ name }) => name === 'first name')?.id ?? 0
  await chat('m')
  await send('PUT /api/channel/', { id, name: 'second name' })
  await chat('m')
  await send('PUT /api/channel/', { id, name: 'present name' })
  await chat('m')
  await chat('filed')
})
afterAll(() => fixture?.close())

function stored(name: string) {
  return {
    name,
    type: 1,
    key: 'sk-x',
    models: 'm',
    base_url: fixture.upstream.baseUrl('any'),
    group: 'default',
  }
}

async function send<Data>(request: Parameters<typeof manage>[2], body?: object): Promise<Data> {
  const { status, message, data } = await manage<Data>(fixture.gateway.url, AS_ROOT, request, body)
  expect([request, status, message]).toEqual([request, 200, ''])
  return data
}

async function chat(model: string): Promise<void> {
  fixture.upstream.script('any', { kind: 'whole', usage: usageText(1000, 1) })
  expect((await fixture.chat('root', ask(model))).status).toBe(200)
}

/** Labels of series with their keys and calls. */
async function seriesOf(query = ''): Promise<[string, string, number][]> {
  const { series } = await send<Series>(`GET /api/usage?by=channel${query}`)
  return series.map(({ key, label, points }) => [
    label,
    key,
    points.reduce((sum, { requests }) => sum + requests, 0),
  ])
}

describe('a renamed channel', () => {
  test("usage of a renamed channel stays one series, under the channel's present name and id", async () => {
    await expect.poll(() => seriesOf()).toContainEqual(['present name', String(id), 3])
    const all = await seriesOf()
    expect(all).toEqual([
      ['present name', String(id), 3],
      ['filed', expect.stringMatching(/^\d+$/), 1],
    ])
    const filed = all[1]?.[1]
    for (const [query, calls] of [
      ['&channel=present%20name', [3]],
      [`&channel_id=${id}`, [3]],
      [`&channel_id=${filed}`, [1]],
      [`&channel_id=${filed}&channel_id=${id}`, [3, 1]],
      [`&channel_id=${id}&channel=filed`, []],
      ['&channel_id=999999', []],
    ] as const)
      expect(
        (await seriesOf(query)).map(([, , requests]) => requests),
        query,
      ).toEqual(calls)
  })

  test('the call log, its filters and their suggested values have all calls of a renamed channel under its present name', async () => {
    const { items } = await send<Rows>('GET /api/log/?model_name=m')
    expect(items.map(({ channel: name, channel_id }) => [name, channel_id])).toEqual(
      Array.from({ length: 3 }, () => ['present name', id]),
    )
    for (const [query, total] of [
      ['channel=present%20name', 3],
      [`channel_id=${id}`, 3],
      ['channel=filed', 1],
      ['channel_id=999999', 0],
    ] as const)
      expect(await send(`GET /api/log/?${query}`), query).toMatchObject({ total })
    expect(await send('GET /api/log/values?field=channel&q=PRESENT')).toEqual([
      { value: String(id), label: 'present name', calls: 3 },
    ])
    const { quota } = await send<{ quota: number }>('GET /api/log/stat?channel=present%20name')
    const { quota: ofModel } = await send<{ quota: number }>('GET /api/log/stat?model_name=m')
    expect(quota).toBe(ofModel)
  })

  test("usage of a deleted channel keeps its last name, and the channel's former name may belong to a new channel", async () => {
    await send(`DELETE /api/channel/${id}`)
    expect((await seriesOf('&model_name=m')).map(([label, , calls]) => [label, calls])).toEqual([
      ['present name', 3],
    ])
    await send('POST /api/channel/', { mode: 'single', channel: stored('first name') })
    await chat('m')
    await expect
      .poll(async () => (await seriesOf('&model_name=m')).map(([label, , calls]) => [label, calls]))
      .toEqual([
        ['first name', 2],
        ['present name', 2],
      ])
  })
})
