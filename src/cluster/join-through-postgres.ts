import { ChangeFeed } from './change-feed.ts'
import { isolatedPeers } from '../limits/peers.ts'
import { SharedCounter } from '../limits/shared-counter.ts'
import { SharedPlaces } from '../limits/shared-places.ts'
import { Announcements } from '../store/postgres/announcements.ts'
import type { BankNodes, Cluster, ClusterOptions } from './join-cluster.ts'
import { namedNodes, NodeReports } from './node-reports.ts'
import { PostgresPlacePeers } from './postgres-place-peers.ts'

/**
 * Joins the nodes on one PostgreSQL database: they receive each other's changes, count calls under way
 * together, and each has a share of every other limit.
 */
export async function joinThroughPostgres(
  url: string,
  { node, messages }: ClusterOptions,
  { names }: BankNodes,
): Promise<Cluster> {
  const announcements = new Announcements(url, messages)
  const changes = new ChangeFeed(node, announcements)
  const limitCounter = new SharedCounter(isolatedPeers(() => names().length))
  const reports = new NodeReports(node, announcements, namedNodes(names))
  const placePeers = new PostgresPlacePeers({ url, node, nodes: () => names().length })
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
      await announcements.close()
    },
  }
}
