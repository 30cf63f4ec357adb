import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Cluster, startCluster } from '../fixtures/cluster.ts'
import { withoutRedis } from '../fixtures/redis-server.ts'
import { type AwayReport, callWhileAway, warmAndCold } from './bank-away.ts'

const refusedOf = ({ warm }: AwayReport) => warm.filter(({ status }) => status !== 200)

const NAME = 'three nodes with PostgreSQL and Redis unreachable'

describe.skipIf(withoutRedis(NAME))('three nodes with PostgreSQL and Redis unreachable', () => {
  let cluster: Cluster
  let report: AwayReport
  beforeAll(async () => {
    cluster = await startCluster({ nodes: 3, configure: warmAndCold })
    cluster.upstream.script('m', { kind: 'whole' })
    const outage = () =>
      callWhileAway(cluster, {
        forMs: 900,
        isNoticed: (ready) => ready.length > 2 && ready.slice(-3).every((status) => status === 503),
        leave() {
          cluster.postgresProxy.disconnect()
          cluster.redisProxy.disconnect()
        },
        comeBack() {
          cluster.postgresProxy.reconnect()
          cluster.redisProxy.reconnect()
        },
      })
    report = await outage()
    // A node that the machine halts for five seconds must hear from the database before it serves on.
    for (
      let repeats = 0;
      repeats < 2 && report.unreported === 0 && refusedOf(report).length > 0;
      repeats += 1
    )
      report = await outage()
    const slowest = (taken: AwayReport['warm']) => Math.round(Math.max(...taken.map(({ tookMs }) => tookMs)))
    const { warm, cold, backlogMs } = report
    console.info({
      warm: warm.length,
      slowest: slowest(warm),
      cold: cold.length,
      coldSlowest: slowest(cold),
      backlogMs,
    })
  })
  afterAll(() => cluster?.clear())

  test('nodes that have lost PostgreSQL and Redis go on serving known keys', () => {
    expect(report.warm.length).toBeGreaterThan(9)
    expect(refusedOf(report)).toEqual([])
  })

  test('nodes that have lost PostgreSQL and Redis refuse unknown keys with 503 and retry-after', () => {
    expect(report.cold.length).toBeGreaterThan(2)
    for (const { status, code, retryAfter } of report.cold) {
      expect([status, code]).toEqual([503, 'overloaded'])
      expect(Number(retryAfter)).toBeGreaterThan(0)
    }
  })

  test('nodes that have lost PostgreSQL and Redis each report that they are not ready', () => {
    expect(report.ready.slice(-3)).toEqual([503, 503, 503])
  })

  test('nodes that had lost PostgreSQL report all charges of the outage after its end', () => {
    expect(report.unreported).toBe(0)
  })
})
