import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { behindProxy } from '../behind-proxy.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { ask } from '../fixtures/fixture.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { dateClock } from '../fixtures/moved-clock.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import { SHARED } from './fixture.ts'

/** Ten prompt and five output tokens. */
const COST = 30

describe.each(SHARED)('leased quota is not spent before $name has answered', (engine) => {
  async function warmNode() {
    const database = await engine.database()
    const { proxy, url } = await behindProxy(database.place)
    const upstream = await startUpstream()
    onTestFinished(() => upstream.stop())
    upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    const clock = dateClock()
    const gateway = await startGateway({
      config: plainConfiguration(upstream.baseUrl('m')),
      env: { DATABASE_URL: url, ...clock.env },
    })
    onTestFinished(() => gateway.discard())
    const chat = () => call(gateway.url, ask('m', { max_tokens: 100 }), { key: 'ann' })
    const statuses = async (): Promise<number> => (await chat()).status
    expect(await statuses()).toBe(200)
    const used = async (): Promise<unknown> =>
      (await database.sql('select used_quota from tokens'))[0]?.['used_quota']
    return { proxy, clock, gateway, chat, statuses, used }
  }

  test.each([1_300, -1_300])(
    'after its clock moves by %d seconds, a node spends leased quota only once the database has answered',
    async (seconds) => {
      const { proxy, clock, chat, statuses, used } = await warmNode()
      proxy.setFault({ kind: 'cut' })
      expect(await statuses()).toBe(200)
      clock.move(seconds)
      const refused = await chat()
      expect(refused.status).toBe(503)
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
      proxy.setFault({ kind: 'pass' })
      await expect.poll(statuses).toBe(200)
      await expect.poll(used).toBe(3 * COST)
    },
  )

  test('a node that was suspended for more than 5 s spends leased quota only once the database has answered', async () => {
    const { proxy, gateway, statuses, used } = await warmNode()
    proxy.setFault({ kind: 'cut' })
    expect(await statuses()).toBe(200)
    gateway.pause()
    await delay(6_500)
    gateway.resume()
    expect(await statuses()).toBe(503)
    proxy.setFault({ kind: 'pass' })
    await expect.poll(statuses).toBe(200)
    await expect.poll(used).toBe(3 * COST)
  })
})
