import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Balancer, startBalancer, withoutBalancer } from '../fixtures/balancer.ts'
import { call, open } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { statusOn } from '../fixtures/port.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { ask, askStream } from '../fixtures/fixture.ts'

const isSkipped = withoutBalancer('the balancer in front of three gateways')

const key = 'ann'
let upstream: ScriptedUpstream
let gateways: RunningGateway[] = []
let balancer: Balancer

beforeAll(async () => {
  if (isSkipped) return
  upstream = await startUpstream()
  const config: Configuration = {
    options: { trusted_proxies: ['127.0.0.1/32'] },
    models: priced(['m', 's']),
    channels: [channel('m', upstream.baseUrl('m')), channel('s', upstream.baseUrl('s'))],
    users: [ROOT, user(2, 'ann', [token(key), token('elsewhere', { allow_ips: '10.9.8.7' })])],
  }
  gateways = await Promise.all([1, 2, 3].map(() => startGateway({ config })))
  balancer = await startBalancer(gateways.map(({ port }) => port))
})

afterAll(async () => {
  await balancer?.stop()
  for (const gateway of gateways) await gateway.discard()
  await upstream?.stop()
})

/** Number of calls that each gateway has answered. */
function answered(gateway: RunningGateway): number {
  return gateway.logs().split('"path":"/v1/chat/completions","status":200').length - 1
}

describe.skipIf(isSkipped)('the balancer of deploy/, in front of three gateways', () => {
  test('HAProxy accepts the balancer configuration of the gateway without warnings', () => {
    expect(balancer.logs()).not.toMatch(/ALERT|WARNING/)
  })

  test('the HAProxy balancer sends calls to all gateways', async () => {
    upstream.script('m', { kind: 'whole', after: sleep(300) })
    const answers = await Promise.all(Array.from({ length: 30 }, () => call(balancer.url, ask('m'), { key })))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    await sleep(500)
    for (const gateway of gateways) expect(answered(gateway)).toBeGreaterThan(4)
  })

  test('the HAProxy balancer passes on each event of a stream when it arrives', async () => {
    upstream.script('s', { kind: 'stream', events: 6, paceMs: 300, word: 'word ' })
    const live = await open(balancer.url, askStream('s'), { key })
    await live.until('word')
    expect(upstream.only('s').eventsSent).toBeLessThan(4)
    expect((await live.end()).text).toContain('[DONE]')
  })

  test("the HAProxy balancer passes on the client's address, and ignores forged headers", async () => {
    const headers = { 'x-forwarded-for': '10.9.8.7' }
    const direct = await call(gateways[0]?.url ?? '', ask('m'), { key: 'elsewhere', headers })
    expect(direct.status).toBe(200)
    const told = await call(balancer.url, ask('m'), { key: 'elsewhere', headers })
    expect(told.status).toBe(403)
  })

  test('the HAProxy balancer hides /metrics of the gateways from clients', async () => {
    expect(await statusOn(balancer.port, '/metrics')).toBe(404)
  })

  test('a rolling restart of all gateways breaks no stream and refuses no call', async () => {
    upstream.script('m', { kind: 'whole' })
    upstream.script('s', { kind: 'stream', events: 40, paceMs: 100 })
    let answeredCalls = 0
    const refused: string[] = []
    let isOver = false
    const client = async (): Promise<void> => {
      for (;;) {
        if (isOver) return
        const { status, text, headers } = await call(balancer.url, ask('m'), { key })
        if (status === 200) answeredCalls += 1
        else refused.push(`${status} ${headers['retry-after'] ?? ''} ${text}`)
      }
    }
    const clients = [1, 2, 3, 4].map(client)
    const streams = await Promise.all(
      Array.from({ length: 9 }, () => open(balancer.url, askStream('s'), { key })),
    )
    for (const gateway of gateways) {
      await gateway.restart()
      // The time that the balancer needs to notice it.
      await sleep(2_500)
    }
    isOver = true
    await Promise.all(clients)
    for (const stream of streams) {
      const { broken, text } = await stream.end()
      expect(broken).toBe(false)
      expect(text).toContain('[DONE]')
    }
    console.log(`${answeredCalls} calls were answered`)
    expect(answeredCalls).toBeGreaterThan(20)
    expect(refused).toEqual([])
  })

  test('the balancer skips a killed gateway within two seconds; without any gateway, it refuses calls with retry-after', async () => {
    const [first, second, third] = gateways
    await first?.kill()
    await sleep(2_000)
    const answers = await Promise.all(Array.from({ length: 20 }, () => call(balancer.url, ask('m'), { key })))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    await second?.kill()
    await third?.kill()
    await sleep(3_000)
    const refused = await call(balancer.url, ask('m'), { key })
    expect(refused.status).toBe(503)
    expect(refused.headers['retry-after']).toBe('2')
    expect(refused.json().error).toMatchObject({ type: 'gateway_error', code: 'overloaded' })
  })
})
