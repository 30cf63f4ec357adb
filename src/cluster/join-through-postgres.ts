import { ChangeFeed } from './change-feed.ts'
import { isolatedPeers } from '../limits/peers.ts'
import { SharedCounter } from '../limits/shared-counter.ts'
import { SharedPlaces } from '../limits/shared-places.ts'
import { Announcements } from '../store/postgres/announcements.ts'
import type { Cluster, ClusterOptions } from './join-cluster.ts'
import { NodeReports } from './node-reports.ts'
import { PostgresPlacePeers } from './postgres-place-peers.ts'
import { Presence } from './presence.ts'

/**
 * Joins the nodes on one PostgreSQL database: they receive each other's changes, count calls under way
 * together, and each has its share of every other limit.
 */
export async function joinThroughPostgres(url: string, options: ClusterOptions): Promise<Cluster> {
  const { node } = options
  const announcements = new Announcements(url)
  const changes = new ChangeFeed(node, announcements)
  const presence = new Presence(node, announcements)
  const limitCounter = new SharedCounter(isolatedPeers(() => presence.count))
  const nodeCount = (): number => Math.max(1, presence.count)
  const reports = new NodeReports(node, announcements, nodeCount)
  const placePeers = new PostgresPlacePeers({ url, node, nodes: () => presence.count })
  const callPlaces = new SharedPlaces(placePeers)
  await announcements.firstAttempt
  return {
    limitCounter,
    callPlaces,
    changes,
    reports,
    isRedisReachable: undefined,
    async close() {
      await Promise.all([limitCounter.close(), callPlaces.close()])
      await placePeers.close()
      changes.close()
      reports.close()
      presence.close()
      await announcements.close()
    },
  }
}
