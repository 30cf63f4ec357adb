import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { behindProxy } from '../stores/behind-proxy.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import type { FaultProxy } from '../fixtures/fault-proxy.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import { call } from '../fixtures/client.ts'
import { ask } from '../fixtures/fixture.ts'
import { SHARED } from './fixture.ts'

/** Ten prompt and five output tokens. */
const COST = 30

describe.each(SHARED)('while $name is unreachable', (engine) => {
  async function onTheLine() {
    const database = await engine.database()
    const { proxy, url } = await behindProxy(database.place)
    const upstream = await startUpstream()
    onTestFinished(() => upstream.stop())
    const gateway = await startGateway({
      config: {
        models: priced(['m']),
        channels: [channel('m', upstream.baseUrl('m'))],
        users: [ROOT, user(2, 'ann', [token('warm'), token('cold')])],
      },
      env: { DATABASE_URL: url },
    })
    onTestFinished(() => gateway.discard())
    upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    const chat = (key: string) => call(gateway.url, ask('m', { max_tokens: 100 }), { key })
    const used = async (): Promise<unknown> =>
      (await database.sql("select used_quota from tokens where name = 'token-warm'"))[0]?.['used_quota']
    return { proxy, chat, used, gateway }
  }

  test.each<[string, (proxy: FaultProxy) => void]>([
    ['cut', (proxy) => proxy.setFault({ kind: 'cut' })],
    ['a black hole', (proxy) => proxy.silence({ kind: 'black hole' })],
  ])(
    'during a database outage, a key in use is served, others get retry-after, and calls are charged later (%s)',
    async (_, spoil) => {
      const { proxy, chat, used, gateway } = await onTheLine()
      let served = 0
      const warm = async (): Promise<number> => {
        const { status } = await chat('warm')
        if (status === 200) served += 1
        return status
      }
      const untilReadyIs = (status: number) =>
        vi.waitFor(async () => expect(await readyz(gateway.url)).toBe(status), {
          timeout: 60_000,
          interval: 50,
        })
      const outage = async (): Promise<number[]> => {
        await vi.waitFor(async () => expect(await warm()).toBe(200), { timeout: 60_000, interval: 50 })
        spoil(proxy)
        const statuses: number[] = []
        for (let index = 0; index < 10; index += 1) statuses.push(await warm())
        const cold = await chat('cold')
        expect(cold.status).toBe(503)
        expect(cold.headers['retry-after']).toBeDefined()
        expect(cold.json().error).toMatchObject({ type: 'gateway_error', code: 'overloaded' })
        await untilReadyIs(503)
        statuses.push(await warm())
        proxy.setFault({ kind: 'pass' })
        await untilReadyIs(200)
        return statuses
      }
      let statuses = await outage()
      // A gateway that the machine halts for five seconds must hear from the database before it serves on.
      for (let repeats = 0; repeats < 2 && statuses.some((status) => status !== 200); repeats += 1)
        statuses = await outage()
      expect(statuses).toEqual(Array.from({ length: 11 }, () => 200))
      await vi.waitFor(async () => expect(await used()).toBe(served * COST), {
        timeout: 60_000,
        interval: 50,
      })
      await vi.waitFor(async () => expect((await chat('cold')).status).toBe(200), {
        timeout: 60_000,
        interval: 50,
      })
    },
    300_000,
  )

  test('a call with an API key that was used recently is sent upstream without a round trip to the database', async () => {
    const { proxy, chat, gateway } = await onTheLine()
    const wait = async (): Promise<number> => {
      proxy.setFault({ kind: 'pass' })
      await expect.poll(() => readyz(gateway.url)).toBe(200)
      expect((await chat('warm')).status).toBe(200)
      proxy.silence({ kind: 'black hole' })
      const startMs = performance.now()
      expect((await chat('warm')).status).toBe(200)
      return performance.now() - startMs
    }
    // A round trip would take two seconds each time; without one, only a busy machine may be that late once.
    await expect.poll(wait).toBeLessThan(1_900)
  })
})

async function readyz(url: string): Promise<number> {
  return (await call(url, undefined, { method: 'GET', path: '/readyz' })).status
}
