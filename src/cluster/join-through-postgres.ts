import { ChangeFeed } from './change-feed.ts'
import { isolatedPeers } from '../limits/peers.ts'
import { SharedCounter } from '../limits/shared-counter.ts'
import { Announcements } from '../store/postgres/announcements.ts'
import type { Cluster, ClusterOptions } from './join-cluster.ts'
import { NodeReports } from './node-reports.ts'
import { Presence } from './presence.ts'

/**
 * Joins the nodes on one PostgreSQL database: they receive each other's changes, and each has its share of
 * every rate limit.
 */
export async function joinThroughPostgres(url: string, options: ClusterOptions): Promise<Cluster> {
  const { node } = options
  const announcements = new Announcements(url)
  const changes = new ChangeFeed(node, announcements)
  const presence = new Presence(node, announcements)
  const limitCounter = new SharedCounter(isolatedPeers(() => presence.count))
  const nodeCount = (): number => Math.max(1, presence.count)
  const reports = new NodeReports(node, announcements, nodeCount)
  await announcements.firstAttempt
  return {
    limitCounter,
    nodeCount,
    changes,
    reports,
    isRedisReachable: undefined,
    async close() {
      await limitCounter.close()
      changes.close()
      reports.close()
      presence.close()
      await announcements.close()
    },
  }
}
