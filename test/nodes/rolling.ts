import { setTimeout as sleep } from 'node:timers/promises'
import { startBalancer } from '../fixtures/balancer.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { startCluster } from '../fixtures/cluster.ts'
import type { ArrivalsOrder, ArrivalsResult } from '../load/arrivals.ts'
import { nextMessage, start } from '../load/child.ts'

/** The result of calls through a balancer during a rolling restart. */
export interface RollingReport extends ArrivalsResult {
  /** The number of rows in the usage log. */
  readonly charged: number
  readonly stillLent: number
}

const BODY = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }], max_tokens: 500 })
/** Milliseconds for a balancer to notice that a node is back, before the next one stops. */
const SEEN_MS = 2_000

/**
 * Sends calls at a steady rate to a balancer in front of three nodes, while each node in turn is stopped and
 * started.
 */
export async function rollWhileCalled(plan: {
  readonly perSecond: number
  readonly seconds: number
}): Promise<RollingReport> {
  const upstream = start(new URL('../../bench/load/lean-upstream.ts', import.meta.url))
  const generator = start(new URL('../load/arrivals.ts', import.meta.url))
  const port = await nextMessage<number>(upstream)
  const cluster = await startCluster({
    nodes: 3,
    configure: () => plainConfiguration(`http://127.0.0.1:${port}/v1`),
  })
  const { fleet, postgres } = cluster
  const balancer = await startBalancer([fleet.node(0).port, fleet.node(1).port, fleet.node(2).port])
  try {
    const { perSecond, seconds } = plan
    const order: ArrivalsOrder = { port: balancer.port, key: 'ann', body: BODY, seconds, pace: { perSecond } }
    const result = nextMessage<ArrivalsResult>(generator)
    generator.send(order)
    for (const node of fleet.nodes) {
      await sleep(SEEN_MS)
      await node.restart()
    }
    const seen = await result
    await fleet.stop()
    const [{ charged } = { charged: 0 }] = await postgres.sql<{ charged: number }>(
      'select count(*) as charged from usage_log',
    )
    const leases = await postgres.sql('select * from leases')
    return { ...seen, charged, stillLent: leases.length }
  } finally {
    upstream.kill()
    generator.kill()
    await balancer.stop()
    await cluster.clear()
  }
}
