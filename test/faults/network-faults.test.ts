import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { type Fault, type FaultProxy, startFaultProxy } from '../fixtures/fault-proxy.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** The prompt and output that the upstream reports, at one unit and four units a token. */
const USAGE = usageText(10, 5)
const COST = 10 + 4 * 5
/** A byte offset in the middle of the response: after the head and some events. */
const MIDDLE = 900

let proxy: FaultProxy
let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced(['m']),
    // Replaced by the proxy's port below.
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
  proxy = await startFaultProxy(fixture.upstream.port)
  const behind = fixture.upstream.baseUrl('m').replace(String(fixture.upstream.port), String(proxy.port))
  await fixture.gateway.restart({
    options: { retries: 0 },
    models: priced(['m', 'patient', 'begun']),
    channels: [
      channel('m', behind, { timeouts: { connect: '1s', first_byte: '600ms', idle: '600ms', total: '5s' } }),
      // A channel with timeouts for a slow machine.
      channel('patient', behind, {
        timeouts: { connect: '60s', first_byte: '60s', idle: '60s', total: '60s' },
      }),
      // A channel that notices a stream's interruption, but not that a slow machine begins it late.
      channel('begun', behind, {
        timeouts: { connect: '60s', first_byte: '60s', idle: '5s', total: '60s' },
      }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  })
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(async () => {
  await fixture?.close()
  await proxy?.stop()
})

/** Makes a call over a faulty network. Returns the response and its charge. */
async function callOver(fault: Fault, stream: boolean, model: 'm' | 'patient' | 'begun' = 'm') {
  proxy.setFault(fault)
  fixture.upstream.script(
    'm',
    stream ? { kind: 'stream', events: 30, usage: USAGE, paceMs: 5 } : { kind: 'whole', usage: USAGE },
  )
  const answer = await fixture.live('ann', stream ? askStream(model) : ask(model))
  const end = await answer.end()
  const row = () => database.usageOf(String(end.headers['x-request-id']))
  await expect.poll(row).toBeDefined()
  return { ...end, charged: row()?.quota ?? -1, reason: row()?.reason }
}

describe('over a faulty network', () => {
  test.each([
    ['that is good', { kind: 'pass' }],
    ['that is late, but not too late', { kind: 'delay', delayMs: 300 }],
  ] as const)(
    'a call over a network %s is answered completely, and charged at its usual price',
    async (_, fault) => {
      for (const stream of [false, true]) {
        const { status, charged, broken } = await callOver(fault, stream, 'patient')
        expect([status, charged, broken]).toEqual([200, COST, false])
      }
    },
  )

  test('a whole response over a network that delivers single bytes reaches the client with status 200 and is charged in full', async () => {
    const { status, charged } = await callOver({ kind: 'slow' }, false, 'patient')
    expect([status, charged]).toEqual([200, COST])
  })

  test.each([
    ['is cut', { kind: 'cut' }],
    ['is a black hole', { kind: 'black hole' }],
    ['closes at once', { kind: 'half-close' }],
    ['is later than the channel waits', { kind: 'delay', delayMs: 2_000 }],
  ] as const)(
    'over a network that %s before the response, nothing is delivered and nothing charged',
    async (_, fault) => {
      for (const stream of [false, true]) {
        const { status, charged, text } = await callOver(fault, stream)
        expect([status, charged]).toEqual([500, 0])
        expect(JSON.parse(text).error.type).toBe('api_error')
      }
    },
  )

  test.each(['cut', 'black hole', 'half-close'] as const)(
    'after a network fault (%s) in the middle, the stream ends with an error, and the delivered part is charged',
    async (kind) => {
      const { status, charged, text } = await callOver({ kind, afterBytes: MIDDLE }, true, 'begun')
      expect(status).toBe(200)
      expect(text).toContain('"error"')
      expect(text).not.toContain('[DONE]')
      expect(charged).toBeGreaterThan(0)
      expect(charged).toBeLessThan(COST + 4 * 30)
    },
  )

  test('a whole response that the network cuts off is neither delivered nor charged', async () => {
    const { status, charged } = await callOver({ kind: 'cut', afterBytes: 150 }, false)
    expect([status, charged]).toEqual([500, 0])
  })

  test('calls succeed again once the network to the upstream has recovered', async () => {
    const { status, charged } = await callOver({ kind: 'pass' }, true, 'patient')
    expect([status, charged]).toEqual([200, COST])
  })
})
