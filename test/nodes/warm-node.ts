import { expect, onTestFinished } from 'vitest'
import { behindProxy } from '../stores/behind-proxy.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { ask } from '../fixtures/fixture.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { dateClock } from '../fixtures/moved-clock.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import type { Engine } from '../stores/engines.ts'

/** The cost of a call of `warmNode`: ten prompt and five output tokens. */
export const COST = 30

/** A node behind a proxy of its database that has made one call, so that quota is leased to it. */
export async function warmNode(engine: Engine) {
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
  await expect.poll(statuses).toBe(200)
  const used = async (): Promise<unknown> =>
    (await database.sql('select used_quota from tokens'))[0]?.['used_quota']
  return { proxy, clock, gateway, chat, statuses, used }
}
