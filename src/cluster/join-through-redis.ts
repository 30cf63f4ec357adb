import { ChangeFeed } from './change-feed.ts'
import { NodeReports } from './node-reports.ts'
import { RedisAnnouncements } from './redis-announcements.ts'
import { RedisPeers } from '../limits/redis-peers.ts'
import { SharedRateCounter } from '../limits/shared-rate-counter.ts'
import { SharedSemaphore } from '../limits/semaphore.ts'
import type { BankNodes, Cluster, ClusterOptions } from './join-cluster.ts'

/**
 * Connects the nodes that use one Redis server. If the server cannot be reached now, the node connects as
 * soon as it can.
 */
export async function joinThroughRedis(
  url: string,
  { namespace, node, messages, log, onIsolated }: ClusterOptions,
  others: BankNodes | undefined,
): Promise<Cluster> {
  const names = others?.names ?? ((): readonly string[] => [node])
  const server = `the Redis server at ${new URL(url).host}`
  const logReachability = (isReachable: boolean, reason = ''): void => {
    if (isReachable) log.info(`${server} responds: limits hold over all nodes together`)
    else
      log.warn(
        `${server} cannot be used (${reason}): until it can, each node keeps to its share of each limit`,
      )
  }
  const peers = new RedisPeers({ url, namespace, node, names, onReachability: logReachability })
  const announcements = new RedisAnnouncements(url, namespace, messages)
  const changes = new ChangeFeed(node, announcements)
  const reports = new NodeReports(node, announcements, names)
  const rateCounter = new SharedRateCounter(peers, onIsolated)
  const semaphore = new SharedSemaphore(peers, onIsolated)
  await Promise.all([peers.firstAttempt, announcements.firstAttempt])
  return {
    rateCounter,
    semaphore,
    changes,
    reports,
    limitAnnouncer: announcements,
    isRedisReachable: () => peers.isReachable,
    async close() {
      await Promise.all([rateCounter.close(), semaphore.close()])
      changes.close()
      reports.close()
      await Promise.all([peers.close(), announcements.close()])
    },
  }
}
