import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  backgroundConfiguration,
  begin,
  type Cases,
  CHARGE,
  charged,
  clientOf,
  holds,
  type Stage,
  stageOf,
  usage,
} from '../equipment/background-stage.ts'
import { PLAIN_PRICE } from '../equipment/configuration.ts'
import { type Fixture, startFixture } from '../equipment/fixture.ts'

/** Limits that one call uses up, and one that two calls use up. */
const ONE_CALL = { tokens: 100, window: '1h' }
const TWO_CALLS = { tokens: 200, window: '1h' }
/** Each makes one call with its key, but the case of the key's limit. */
const CASES: Cases = {
  held: {},
  cancelled: {},
  deleted: {},
  key: {},
  model: { model: { rate_limit: ONE_CALL } },
  channel: { channel: { rate_limit: ONE_CALL } },
  uncounted: { model: { price: { ...PLAIN_PRICE, request: 0.002 } } },
  failed: {},
  streamed: {},
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    ...backgroundConfiguration(upstream, CASES),
    rate_limits: { key: TWO_CALLS },
  }))
})
afterAll(() => fixture?.close())

const stage = (name: string): Stage => stageOf(fixture, CASES, name)

describe('a response in the background', () => {
  test('is held until a GET sees that it is done, and charged once by its usage', async () => {
    const on = stage('held')
    const { id, status } = await begin(on)
    expect(status).toBe('in_progress')
    expect(usage(on)).toHaveLength(0)
    expect(holds(on)).toHaveLength(1)
    expect((await on.client.responses.retrieve(id)).status).toBe('in_progress')
    expect(usage(on)).toHaveLength(0)
    on.provider.backgroundStatus = 'completed'
    expect((await on.client.responses.retrieve(id)).status).toBe('completed')
    expect(await charged(on)).toMatchObject({ quota: CHARGE, reason: 'complete' })
    await Promise.all(Array.from({ length: 5 }, () => on.client.responses.retrieve(id)))
    expect(usage(on)).toHaveLength(1)
    await on.client.responses.delete(id)
    await expect(on.client.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
  })

  test('is cancelled, and charged for its prompt where the upstream tells no usage', async () => {
    const on = stage('cancelled')
    const { id } = await begin(on)
    expect(await on.client.responses.cancel(id)).toMatchObject({ id, status: 'cancelled' })
    const row = await charged(on)
    expect(row.reason).toBe('client_gone')
    expect(row.quota).toBeGreaterThan(0)
    expect(row.quota).toBeLessThan(100)
    expect(row.input_tokens).toBe(row.quota)
  })

  test('is not deleted while it is made, and charged before it is', async () => {
    const on = stage('deleted')
    const { id } = await begin(on)
    await expect(on.client.responses.delete(id)).rejects.toMatchObject({ status: 400 })
    on.provider.backgroundStatus = 'completed'
    await on.client.responses.delete(id)
    expect(await charged(on)).toMatchObject({ quota: CHARGE })
    expect(on.provider.made).toHaveLength(0)
  })

  test.each([
    ['its key', 'key', 2, 'key'],
    ['its model', 'model', 1, 'ann'],
    ['its channel', 'channel', 1, 'ann'],
  ])('counts on the token limit of %s once it is settled', async (_, name, calls, nextKey) => {
    const on = stage(name)
    for (let made = 1; made <= calls; made += 1) {
      on.provider.backgroundStatus = 'in_progress'
      const { id } = await begin(on)
      on.provider.backgroundStatus = 'completed'
      await on.client.responses.retrieve(id)
      await vi.waitFor(() => expect(usage(on)).toHaveLength(made), 60_000)
    }
    expect(usage(on)[0]).toMatchObject({ quota: CHARGE })
    const next = { ...on, client: clientOf(on.gateway, nextKey) }
    await expect(begin(next)).rejects.toMatchObject({ status: 429 })
  })

  test('without usage is charged by a count, and the price of a request once', async () => {
    const on = stage('uncounted')
    const { id } = await begin(on)
    on.provider.backgroundStatus = 'completed'
    on.upstream.decide(on.name, (request) => {
      const decided = on.provider.decision(request)
      if (decided.kind !== 'whole') return decided
      return {
        ...decided,
        body: String(decided.body).replace(/"usage":\{.*?\}\s*,"x_big/, '"usage":null,"x_big'),
      }
    })
    await on.client.responses.retrieve(id)
    const row = await charged(on)
    expect(row.reason).toBe('estimated')
    expect(row.output_tokens).toBeGreaterThan(0)
    expect(row.quota).toBe(row.input_tokens + 4 * row.output_tokens + 1_000)
  })

  test('that failed costs nothing', async () => {
    const on = stage('failed')
    const { id } = await begin(on)
    on.provider.backgroundStatus = 'failed'
    await on.client.responses.retrieve(id)
    expect(await charged(on)).toMatchObject({ quota: 0, reason: 'failed' })
  })

  test('whose stream ends is charged once, by its end', async () => {
    const on = stage('streamed')
    const events = await on.client.responses.create({
      model: on.name,
      input: 'hi',
      background: true,
      stream: true,
    })
    let id = ''
    for await (const event of events) if (event.type === 'response.completed') ({ id } = event.response)
    on.provider.backgroundStatus = 'completed'
    await on.client.responses.retrieve(id)
    expect(await charged(on)).toMatchObject({ quota: CHARGE })
  })
})
