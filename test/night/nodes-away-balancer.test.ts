import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { startBalancer, withoutBalancer } from '../fixtures/balancer.ts'
import { call } from '../fixtures/client.ts'
import { startCluster } from '../fixtures/cluster.ts'
import { statusOn } from '../fixtures/port.ts'
import { withoutRedis } from '../fixtures/redis-server.ts'
import { ask } from '../fixtures/fixture.ts'
import { warmAndCold } from '../nodes/bank-away.ts'

const NAME = 'three nodes behind HAProxy whose PostgreSQL is out of reach'
const AWAY_MS = 12_000

test.skipIf(withoutRedis(NAME) || withoutBalancer(NAME))(
  'while PostgreSQL is unreachable, no node is ready, and the balancer still gets answers for an API key in use',
  { timeout: 90_000 },
  async () => {
    const cluster = await startCluster({ nodes: 3, configure: warmAndCold })
    onTestFinished(() => cluster.clear())
    cluster.upstream.script('m', { kind: 'whole' })
    const { urls } = cluster.fleet
    const ports = urls.map((url) => Number(new URL(url).port))
    const balancer = await startBalancer(ports)
    onTestFinished(() => balancer.stop())
    const chat = async (url: string): Promise<number> =>
      (await call(url, ask('m', { max_tokens: 50 }), { key: 'warm' })).status
    for (const url of urls) expect(await chat(url)).toBe(200)
    // Waits until the nodes have borrowed ahead.
    await sleep(1000)

    cluster.postgresProxy.disconnect()
    const statuses: number[] = []
    const endMs = performance.now() + AWAY_MS
    while (performance.now() < endMs) {
      statuses.push(await chat(balancer.url))
      await sleep(50)
    }
    const ready = await Promise.all(ports.map((port) => statusOn(port, '/readyz')))
    cluster.postgresProxy.reconnect()
    console.info(`${statuses.length} calls while it was away`)
    expect(ready).toEqual([503, 503, 503])
    expect(statuses.length).toBeGreaterThan(50)
    expect(statuses.filter((status) => status !== 200)).toEqual([])
    await expect
      .poll(() => Promise.all(ports.map((port) => statusOn(port, '/readyz'))))
      .toEqual([200, 200, 200])
  },
)
