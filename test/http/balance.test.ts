import { afterAll, beforeAll, expect, test } from 'vitest'
import { setTimeout as sleep } from 'node:timers/promises'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const LANES = ['one', 'two'] as const
/**
 * A tenth of the calls is distributed by weight, and half of these go to the other channel: never more than
 * 12 of 40.
 */
const CALLS = 40
const MOST = 28

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: {
      busy: { price: PLAIN_PRICE, balance: 'least_busy' },
      slow: { price: PLAIN_PRICE, balance: 'latency' },
    },
    channels: LANES.map((lane) => channel(lane, upstream.baseUrl(lane), { models: ['busy', 'slow'] })),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

/** Makes the calls, and returns their statuses. */
async function callOften(model: string): Promise<ReadonlySet<number>> {
  const statuses = new Set<number>()
  for (let i = 0; i < CALLS; i++) statuses.add((await fixture.chat('ann', ask(model))).status)
  return statuses
}

test('the balance mode least_busy prefers the channel with the fewest calls under way', async () => {
  const held = Promise.withResolvers<void>()
  let isFirst = true
  for (const lane of LANES)
    fixture.upstream.decide(lane, () => {
      const after = isFirst ? held.promise : Promise.resolve()
      isFirst = false
      return { kind: 'whole', after }
    })
  const first = fixture.chat('ann', ask('busy'))
  await Promise.race(LANES.map((lane) => fixture.upstream.receivedAtLeast(lane, 1)))
  const idle = LANES.find((lane) => fixture.upstream.received(lane).length === 0) ?? 'one'
  expect(await callOften('busy')).toEqual(new Set([200]))
  expect(fixture.upstream.received(idle).length).toBeGreaterThanOrEqual(MOST)
  held.resolve()
  await first
})

test('the balance mode latency prefers the channel with the shortest time to the first byte', async () => {
  for (const lane of LANES) fixture.upstream.forget(lane)
  fixture.upstream.decide('one', () => ({ kind: 'whole', after: sleep(300) }))
  fixture.upstream.decide('two', () => ({ kind: 'whole' }))
  // No channel has a measured time yet, so that the weights alone decide.
  await Promise.all(Array.from({ length: 24 }, () => fixture.chat('ann', ask('slow'))))
  const statuses = new Set<number>()
  const callsOfTwo = async (): Promise<number> => {
    const before = fixture.upstream.received('two').length
    for (const status of await callOften('slow')) statuses.add(status)
    return fixture.upstream.received('two').length - before
  }
  // On a busy machine, the measured times may be far from those of the upstreams; further calls correct this.
  await expect.poll(callsOfTwo, { timeout: 240_000, interval: 0 }).toBeGreaterThanOrEqual(MOST)
  expect(statuses).toEqual(new Set([200]))
})
