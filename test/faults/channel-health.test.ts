import { Agent } from 'node:http'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorBody } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import type { Received } from '../fixtures/scripted-upstream.ts'

const FAILURES = 5
/** The first rest of a channel after that many failures. */
const REST_MS = 5_000
const BROKEN = { kind: 'status', status: 500, body: errorBody('out of order') } as const

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: {
      ...priced(['pair', 'unpaid', 'left', 'long', 'cut', 'keys', 'wish', 'alone', 'rested', 'storm-again']),
      storm: { price: { input: 2, output: 8 }, fallback: ['storm-again'] },
    },
    channels: [
      ...['pair', 'unpaid', 'left', 'long', 'cut', 'wish', 'rested', 'storm'].flatMap((model) => {
        // The fallback model of `storm` asks the same accounts again.
        const models = model === 'storm' ? [model, 'storm-again'] : [model]
        return [
          channel(model, upstream.baseUrl(model), { models, priority: 5 }),
          channel(`${model}-spare`, upstream.baseUrl(`${model}-spare`), { models }),
        ]
      }),
      channel('keys', upstream.baseUrl('keys'), { keys: ['one', 'two'] }),
      channel('alone', upstream.baseUrl('alone')),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

const count = (lane: string): number => fixture.upstream.received(lane).length

async function resting(): Promise<number> {
  const { text } = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/metrics' })
  return Number(/^sluice_resting_channels (\d+)$/m.exec(text)?.[1])
}

/** Expects that a channel got no call between its last failure in a row and the end of its rest. */
function expectRestAfterFailures(lane: string): void {
  const times = fixture.upstream.received(lane).map(({ at }) => at)
  expect(times.length).toBeGreaterThanOrEqual(FAILURES)
  const restEnd = (times[FAILURES - 1] ?? 0) + REST_MS
  // On a slow machine the calls may last longer than the rest.
  for (const at of times.slice(FAILURES)) expect(at).toBeGreaterThanOrEqual(restEnd)
}

/** Locks the database, so that no other process can write. */
function lockDatabase(dataDir: string): () => void {
  const database = new DatabaseSync(join(dataDir, 'sluice.db'), { timeout: 5000 })
  database.exec('BEGIN EXCLUSIVE')
  return () => {
    database.exec('ROLLBACK')
    database.close()
  }
}

describe('a channel that fails several times in a row', () => {
  test('a failing channel is skipped, probed by a single call after a while, and restored', async () => {
    const { upstream } = fixture
    upstream.script('pair', BROKEN)
    for (let i = 0; i < 20; i++) expect((await fixture.chat('ann', ask('pair'))).status).toBe(200)
    expectRestAfterFailures('pair')
    expect(count('pair-spare')).toBe(20)
    // On a slow machine the rest may be over; a further call then begins the next one.
    const restingAfterCall = async (): Promise<number> => {
      await fixture.chat('ann', ask('pair'))
      return resting()
    }
    await expect.poll(restingAfterCall).toBe(1)

    // While one probe is in flight, other calls use the other channel.
    const probe = Promise.withResolvers<void>()
    upstream.script('pair', { kind: 'whole', after: probe.promise })
    const probing = async (): Promise<number> => {
      let answered = 0
      const calls = Array.from({ length: 4 }, async () => {
        await fixture.chat('ann', ask('pair'))
        answered += 1
      })
      await expect.poll(() => answered + count('pair')).toBe(4)
      if (count('pair') > 0) probe.resolve()
      await Promise.all(calls)
      return count('pair')
    }
    await expect.poll(probing, { interval: 200 }).toBe(1)
    upstream.forget('pair')
    upstream.forget('pair-spare')
    for (let i = 0; i < 5; i++) await fixture.chat('ann', ask('pair'))
    expect([count('pair'), count('pair-spare')]).toEqual([5, 0])
  })

  test('a failing channel is restored even if the charge of the probing call could not be written', async () => {
    const { upstream, gateway } = fixture
    upstream.script('unpaid', BROKEN)
    for (let i = 0; i < FAILURES; i++) await fixture.chat('ann', ask('unpaid'))
    await expect.poll(resting, { interval: 100 }).toBe(0)
    upstream.script('unpaid', { kind: 'whole' })
    const unlock = lockDatabase(gateway.dataDir)
    try {
      // Neither hold nor charge can be written, so that the call cannot be answered.
      expect((await fixture.chat('ann', ask('unpaid'))).status).toBe(503)
    } finally {
      unlock()
    }
    expect(count('unpaid')).toBe(1)
    // The first of these calls may come before the gateway can write again.
    let before = 0
    const again = async (): Promise<number> => {
      before = count('unpaid')
      return (await fixture.chat('ann', ask('unpaid'))).status
    }
    await expect.poll(again).toBe(200)
    expect(count('unpaid')).toBe(before + 1)
    expect(await resting()).toBe(0)
  })

  test('a failing channel is probed by the next call where the client of the first probing call has left', async () => {
    const { upstream } = fixture
    upstream.script('left', BROKEN)
    for (let i = 0; i < FAILURES; i++) await fixture.chat('ann', ask('left'))
    await expect.poll(resting, { interval: 100 }).toBe(0)
    upstream.script('left', { kind: 'silence' })
    const agent = new Agent()
    const asked = fixture.chat('ann', ask('left'), { agent }).catch(() => undefined)
    await upstream.receivedAtLeast('left', 1)
    expect(await resting()).toBe(1)
    agent.destroy()
    await asked
    await expect.poll(resting, { interval: 50 }).toBe(0)
    upstream.script('left', { kind: 'whole' })
    expect((await fixture.chat('ann', ask('left'))).status).toBe(200)
    expect(count('left')).toBe(1)
  })

  test('a failing channel is restored when it answers the probing call, before the answer has ended', async () => {
    const { upstream } = fixture
    upstream.script('long', BROKEN)
    for (let i = 0; i < FAILURES; i++) await fixture.chat('ann', ask('long'))
    await expect.poll(resting, { interval: 100 }).toBe(0)
    const { promise: endsAfter, resolve: endNow } = Promise.withResolvers<void>()
    upstream.script('long', { kind: 'stream', word: 'begun', endsAfter })
    const probe = await fixture.live('ann', askStream('long'))
    await probe.until('begun')
    upstream.script('long', { kind: 'whole' })
    upstream.forget('long-spare')
    for (let i = 0; i < 3; i++) await fixture.chat('ann', ask('long'))
    expect([count('long'), count('long-spare')]).toEqual([3, 0])
    endNow()
    expect((await probe.end()).text).toContain('data: [DONE]')
  })

  test('responses that are cut off in the middle count as failures of their channel', async () => {
    fixture.upstream.script('cut', { kind: 'stream', events: 3, ending: 'reset' })
    for (let i = 0; i < 10; i++) await fixture.chat('ann', askStream('cut'))
    expectRestAfterFailures('cut')
  })

  test('a failing channel is still called where no other channel serves the model', async () => {
    fixture.upstream.script('alone', BROKEN)
    for (let i = 0; i < 10; i++) expect((await fixture.chat('ann', ask('alone'))).status).toBe(500)
    expect(count('alone')).toBe(10)
    fixture.upstream.script('alone', { kind: 'whole' })
    expect((await fixture.chat('ann', ask('alone'))).status).toBe(200)
  })
})

describe('an upstream with retry-after', () => {
  test("an upstream key that gets 429 with retry-after is not used for that time, and the channel's other key is used", async () => {
    fixture.upstream.decide('keys', ({ headers }) =>
      headers.authorization === 'Bearer one'
        ? { kind: 'status', status: 429, body: errorBody('slow down'), headers: { 'retry-after': '2' } }
        : { kind: 'whole' },
    )
    for (let i = 0; i < 6; i++) expect((await fixture.chat('ann', ask('keys'))).status).toBe(200)
    const first = (): Received[] =>
      fixture.upstream.received('keys').filter(({ headers }) => headers.authorization === 'Bearer one')
    expect(first().length).toBeGreaterThanOrEqual(1)
    await expect
      .poll(async () => (await fixture.chat('ann', ask('keys')), first().length), { interval: 200 })
      .toBeGreaterThanOrEqual(2)
    const [before, again] = first()
    expect((again?.at ?? 0) - (before?.at ?? 0)).toBeGreaterThanOrEqual(2_000)
  })

  test('a channel that answers 503 with retry-after is skipped at once', async () => {
    fixture.upstream.script('wish', {
      kind: 'status',
      status: 503,
      body: errorBody('maintenance'),
      headers: { 'retry-after': '30' },
    })
    for (let i = 0; i < 4; i++) expect((await fixture.chat('ann', ask('wish'))).status).toBe(200)
    expect(count('wish')).toBe(1)
  })
})

describe('failures of all upstreams', () => {
  const CALLS = 400
  /** Makes calls that all fail, after which the reserve of further attempts is used up. */
  async function storm(): Promise<void> {
    for (const lane of ['storm', 'storm-spare']) fixture.upstream.script(lane, BROKEN)
    for (let sent = 0; sent < CALLS; sent += 50) {
      const answers = await Promise.all(Array.from({ length: 50 }, () => fixture.chat('ann', ask('storm'))))
      for (const { status } of answers) expect(status).toBe(500)
    }
  }

  test('a call asks each account once, and asks again at most fifty times at first, and then one time in ten calls', async () => {
    const began = performance.now()
    await storm()
    const asked = count('storm') + count('storm-spare')
    expect(asked).toBeGreaterThanOrEqual(CALLS)
    // Five attempts a second are added, also on a machine that takes long for the calls.
    const tookSeconds = (performance.now() - began) / 1000
    expect(asked).toBeLessThanOrEqual(2 * CALLS + 50 + CALLS / 10 + 5 * Math.max(10, tookSeconds))
    const charged = databaseOf(fixture.gateway.dataDir)
      .usage()
      .filter(({ model }) => model === 'storm')
    expect(charged.every(({ quota }) => quota === 0)).toBe(true)
  })

  test('a call whose accounts all rest moves to each of them, however many attempts were made', async () => {
    const limited = {
      kind: 'status',
      status: 429,
      body: errorBody('slow down'),
      headers: { 'retry-after': '60' },
    } as const
    for (const lane of ['rested', 'rested-spare']) fixture.upstream.script(lane, limited)
    expect((await fixture.chat('ann', ask('rested'))).status).toBe(429)
    await storm()
    fixture.upstream.script('rested-spare', { kind: 'whole' })
    const answers = await Promise.all(Array.from({ length: 20 }, () => fixture.chat('ann', ask('rested'))))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
  })
})
