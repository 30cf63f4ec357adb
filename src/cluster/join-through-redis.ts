import { ChangeFeed } from './change-feed.ts'
import { RedisAnnouncements } from './redis-announcements.ts'
import { RedisPeers } from '../limits/redis-peers.ts'
import { SharedCounter } from '../limits/shared-counter.ts'
import type { Cluster, ClusterOptions } from './join-cluster.ts'

/**
 * Joins the nodes that use the same Redis server. Where it cannot be reached now, they are joined when it
 * can.
 */
export async function joinThroughRedis(url: string, options: ClusterOptions): Promise<Cluster> {
  const { namespace, node, log, onIsolated: onAlone } = options
  const server = `the Redis server at ${new URL(url).host}`
  const tell = (isThere: boolean, reason = ''): void => {
    if (isThere) log.info(`${server} answers: limits hold over all nodes together`)
    else
      log.warn(
        `${server} cannot be used (${reason}): until it can, each node keeps to its share of each limit`,
      )
  }
  const peers = new RedisPeers({ url, namespace, node, onReachability: tell })
  const announcements = new RedisAnnouncements(url, namespace)
  const changes = new ChangeFeed(node, announcements)
  const counts = new SharedCounter(peers, onAlone)
  await Promise.all([peers.firstAttempt, announcements.firstAttempt])
  return {
    limitCounter: counts,
    changes,
    isRedisReachable: () => peers.isReachable,
    async close() {
      await counts.close()
      changes.close()
      await Promise.all([peers.close(), announcements.close()])
    },
  }
}
