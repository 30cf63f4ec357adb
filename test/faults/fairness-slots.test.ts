import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type FullResponse, call, type LiveResponse, send } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { openCalls, untilOver } from '../fixtures/open-calls.ts'
import { expectServedDuring } from './served-during.ts'

const MAX = 8

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { max_calls: MAX },
    rate_limits: {},
    models: priced(['m', 'endless']),
    channels: ['m', 'endless'].map((name) => channel(name, upstream.baseUrl(name))),
    users: [
      ROOT,
      user(2, 'ann', [token('ann')]),
      user(3, 'bob', [token('bob')], { access_token: 'access-token-of-bob' }),
      user(4, 'cid', [token('cid')]),
    ],
  }))
  fixture.upstream.script('m', { kind: 'whole' })
  fixture.upstream.script('endless', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 50 })
})
beforeEach(() => fixture.upstream.forget('endless'))
afterAll(() => fixture?.close())

const streams = new Set<LiveResponse>()
/** Starts streams that do not end. Returns those that were admitted. */
async function hold(key: string, count: number): Promise<LiveResponse[]> {
  const begun = await Promise.all(
    Array.from({ length: count }, () => fixture.live(key, askStream('endless'))),
  )
  for (const stream of begun) streams.add(stream)
  return begun.filter(({ status }) => status === 200)
}
const hangUp = (stream: LiveResponse): void => {
  streams.delete(stream)
  stream.abort()
}
afterEach(async () => {
  for (const stream of streams) hangUp(stream)
  await untilOver(fixture.gateway.url, 0)
})

const bob = (): Promise<FullResponse> => fixture.chat('bob', ask('m'))

describe('calls that never end', () => {
  test("endless calls of one key take only half of the call slots once another key calls, and the other key's calls are served", async () => {
    let held: LiveResponse[] = []
    await expectServedDuring(async () => {
      held = await hold('ann', 4 * MAX)
    }, bob)
    expect(held).toHaveLength(MAX / 2)
  })

  test('endless calls of the only key in use take all call slots, and the call of a second key waits for a free slot', async () => {
    // A gateway that has just started knows no other key.
    await fixture.gateway.restart()
    const [first, ...others] = await hold('ann', MAX)
    expect(others).toHaveLength(MAX - 1)
    const began = performance.now()
    const waiting = bob()
    if (first) hangUp(first)
    const { status } = await waiting
    // The wait ends after two seconds. In this time, a busy gateway may not have noticed which clients hung
    // up.
    if (performance.now() - began < 1_900) expect(status).toBe(200)
    else await expect.poll(async () => (await bob()).status).toBe(200)
  })

  test('while several keys make more endless calls than there are slots, management requests are still served', async () => {
    for (const key of ['ann', 'bob', 'cid']) await hold(key, 2 * MAX)
    const self = (): Promise<FullResponse> =>
      call(fixture.gateway.url, undefined, {
        method: 'GET',
        path: '/api/user/self',
        headers: { authorization: 'access-token-of-bob', 'gateway-user': '3' },
      })
    const answers = await Promise.all(Array.from({ length: 10 }, self))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
  })

  test('a call that finds all call slots in use waits two seconds, and is then refused with 503 and retry-after', async () => {
    await fixture.gateway.restart()
    await hold('ann', MAX)
    const began = performance.now()
    const refused = await bob()
    expect(performance.now() - began).toBeGreaterThan(1_900)
    expect(refused.status).toBe(503)
    expect(refused.headers['retry-after']).toBe('1')
    expect(refused.json().error).toMatchObject({ type: 'gateway_error', code: 'overloaded' })
  })

  test('the next free call slot goes to a client that still waits, not to one that hung up', async () => {
    await fixture.gateway.restart()
    const [first] = await hold('ann', MAX)
    const { url } = fixture.gateway
    const impatient = Array.from({ length: 3 }, () => send(url, askStream('endless'), { key: 'bob' }))
    // At this time they wait, or were refused on a slow machine.
    await openCalls(url)
    for (const one of impatient) one.destroy()
    await expect.poll(() => openCalls(url)).toBe(MAX)
    if (first) hangUp(first)
    await expect.poll(async () => (await fixture.chat('cid', ask('m'))).status).toBe(200)
    expect(fixture.upstream.received('endless').length).toBe(MAX)
  })
})
