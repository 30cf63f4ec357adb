import { expect, onTestFinished, test } from 'vitest'
import { startFaultProxy } from '../fixtures/fault-proxy.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { type RedisServer, startRedisServer, withoutRedis } from '../fixtures/redis-server.ts'

/** The number of connections of gateways at a server. */
async function connections(server: RedisServer): Promise<number> {
  const clients = String(await server.command(['CLIENT', 'LIST']))
  return [...clients.matchAll(/ name=sluice /g)].length
}

test.skipIf(withoutRedis('a fail-over of Redis'))(
  'once Redis has become a replica, all connections of a node lead to the new server',
  async () => {
    const former = await startRedisServer()
    onTestFinished(() => former.stop())
    const next = await startRedisServer()
    onTestFinished(() => next.stop())
    const place = { host: '127.0.0.1', port: former.port }
    const address = await startFaultProxy(place)
    onTestFinished(() => address.stop())
    const gateway = await startGateway({
      config: {},
      env: { REDIS_URL: `redis://127.0.0.1:${address.port}` },
      root: await patientProgram(),
    })
    onTestFinished(() => gateway.discard())
    const all = await connections(former)
    expect(all).toBeGreaterThan(1)
    place.port = next.port
    await former.command(['REPLICAOF', '127.0.0.1', String(next.port)])
    await expect.poll(() => connections(former)).toBe(0)
    await expect.poll(() => connections(next)).toBeGreaterThanOrEqual(all)
  },
)
