import { describe, expect, test } from 'vitest'
import { withoutRedis } from '../fixtures/redis-server.ts'
import { loseNode } from '../nodes/lost-node.ts'
import { pauseBeyondLease } from '../nodes/paused-node.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()

describe.skipIf(withoutRedis('a lost node'))('a lost node', () => {
  test(`a lost node that returns after its quota leases have ended spends nothing of them (seed ${seed})`, {
    timeout: 240_000,
  }, async () => {
    const report = await pauseBeyondLease(seed)
    console.info(report)
    expect(report.broken).toEqual([])
    expect(report.borrowed).toBeGreaterThan(0)
    expect(report.kept).toBe(0)
    expect(report.answeredAfter).toBeGreaterThan(0)
  })

  test(`a node lost with its data folder loses at most the charges since its last report, which are estimated (seed ${seed})`, {
    timeout: 120_000,
  }, async () => {
    const report = await loseNode(seed)
    console.info(report)
    expect(report.broken).toEqual([])
    // A report is sent every 200 ms; a busy machine may take longer for one.
    expect(report.longestMs).toBeLessThan(1000)
    expect(report.estimated).toBeGreaterThan(0)
  })
})
