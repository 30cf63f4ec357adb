import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BEN = { id: 3, accessToken: 'the-access-token-of-ben' }
const ADA = { id: 4, accessToken: 'the-access-token-of-ada' }

interface Detail {
  readonly quota: number
  readonly cost: readonly { kind: string; count: number; price_usd: string; quota: string }[] | null
  readonly ratio: string
  readonly rounded: string
  readonly tier_above: number | null
  readonly quota_per_unit: number
  readonly attempts?: readonly Record<string, unknown>[]
  readonly timing: Readonly<Record<'queued_ms' | 'connect_ms' | 'first_byte_ms' | 'total_ms', number>>
  readonly dropped: readonly string[]
}

let fixture: Fixture
let dearer: object

beforeAll(async () => {
  fixture = await startFixture((upstream) => {
    const config = {
      rate_limits: { global: { requests: 0, window: '1s' } },
      groups: { default: { ratio: '0.7' } },
      models: {
        m: {
          price: { input: '3.3', output: '15.1', tiers: [{ above: 1000, input: '6.7', output: '22.5' }] },
        },
        c: { price: { input: '1', output: '1' } },
      },
      channels: [
        channel('first', upstream.baseUrl('first'), { models: ['m'], priority: 2, keys: ['one'] }),
        channel('second', upstream.baseUrl('second'), { models: ['m'], priority: 1 }),
        channel('converted', upstream.baseUrl('converted'), { models: ['c'], protocol: 'messages' }),
      ],
      users: [
        ROOT,
        user(2, 'ann', [token('ann')], { access_token: ANN.accessToken }),
        user(3, 'ben', [], { access_token: BEN.accessToken }),
        user(4, 'ada', [], { access_token: ADA.accessToken, role: 10 }),
      ],
    }
    dearer = { ...config, models: { ...config.models, m: { price: { input: '99', output: '99' } } } }
    return config
  })
})
afterAll(() => fixture?.close())

async function called(prompt: number): Promise<string> {
  const usage = usageText(prompt, 37, 100)
  fixture.upstream.script('second', { kind: 'whole', usage })
  const { status, headers } = await fixture.chat('ann', ask('m'))
  expect(status).toBe(200)
  return String(headers['x-request-id'])
}

const detail = async (account: typeof ANN, path: string) =>
  manage<Detail>(fixture.gateway.url, account, `GET /api/log/${path}`)

test("the sum of a call's cost lines times the group ratio is its charge, and is not changed by later prices", async () => {
  fixture.upstream.script('first', { kind: 'status', status: 500, body: '{}' })
  const id = await called(2000)
  await fixture.gateway.apply(dearer)
  const { data } = await detail(ADA, id)
  expect(data.cost?.map(({ kind, count, price_usd }) => [kind, count, price_usd])).toEqual([
    ['input', 1900, '6.7'],
    ['cached', 100, '0.67'],
    ['output', 37, '22.5'],
  ])
  expect(data).toMatchObject({ ratio: '0.7', tier_above: 1000, quota_per_unit: 500_000 })
  expect(Math.round(Number(data.rounded) * 0.7)).toBe(data.quota)
  const sum = (data.cost ?? []).reduce((total, { quota }) => total + Number(quota), 0)
  expect(sum).toBeCloseTo(Number(data.rounded), 6)
  expect(data.attempts).toMatchObject([
    { channel: 'first', key_index: 0, status: 500 },
    { channel: 'second', key_index: 0, status: 200, cause: null },
  ])
  expect(data.attempts?.[0]?.['cause']).toBeTypeOf('string')
})

test("a call's details have its times in the queue, to connect and to the first byte; a reused connection has a connect time of 0", async () => {
  const callOnce = async (): Promise<Detail> => {
    fixture.upstream.script('converted', wholeMessage([{ text: 'Hello.' }]))
    const body = { model: 'c', messages: [{ role: 'user', content: 'hi' }], seed: 7 }
    const { headers } = await fixture.chat('ann', body)
    return (await detail(ANN, `self/${String(headers['x-request-id'])}`)).data
  }
  const first = await callOnce()
  const { queued_ms: queued, connect_ms: connect, first_byte_ms: firstByte, total_ms: total } = first.timing
  expect(connect).toBeGreaterThan(0)
  // Each part is rounded separately.
  expect(queued + connect).toBeLessThanOrEqual(firstByte + 2)
  expect(firstByte).toBeLessThanOrEqual(total)
  expect(first.dropped).toEqual(['seed'])
  // The provider may have closed the connection meanwhile on a busy machine; the next call then opens another one.
  await expect.poll(async () => (await callOnce()).timing.connect_ms).toBe(0)
})

test('members see the details of their own calls only, and without the attempts at upstreams', async () => {
  fixture.upstream.script('first', { kind: 'status', status: 500, body: '{}' })
  const id = await called(500)
  const { status, data } = await detail(ANN, `self/${id}`)
  expect(status).toBe(200)
  expect(data.cost).not.toBeNull()
  expect(data).not.toHaveProperty('attempts')
  expect(data).not.toHaveProperty('channel')
  expect((await detail(BEN, `self/${id}`)).status).toBe(404)
  expect((await detail(ANN, id)).status).toBe(403)
  expect((await detail({ id: 2, accessToken: 'wrong' }, `self/${id}`)).status).toBe(401)
  expect((await detail(ADA, 'abc')).status).toBe(404)
  expect((await detail(ADA, 'nothing')).status).toBe(400)
})
