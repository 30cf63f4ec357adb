import { Changes } from './changes.ts'
import { RedisAnnouncements } from './redis-announcements.ts'
import { RedisPeers } from '../limits/redis-peers.ts'
import { SharedCounts } from '../limits/shared-counts.ts'
import type { Nodes, NodesOptions } from './join.ts'

/**
 * Joins the nodes that use the same Redis server. Where it cannot be reached now, they are joined when it
 * can.
 */
export async function joinThroughRedis(url: string, options: NodesOptions): Promise<Nodes> {
  const { namespace, node, log, onAlone } = options
  const server = `the Redis server at ${new URL(url).host}`
  const tell = (isThere: boolean, reason = ''): void => {
    if (isThere) log.info(`${server} answers: limits hold over all nodes together`)
    else
      log.warn(
        `${server} cannot be used (${reason}): until it can, each node keeps to its share of each limit`,
      )
  }
  const peers = new RedisPeers({ url, namespace, node, tell })
  const announcements = new RedisAnnouncements(url, namespace)
  const changes = new Changes(node, announcements)
  const counts = new SharedCounts(peers, onAlone)
  await Promise.all([peers.tried, announcements.tried])
  return {
    counts,
    changes,
    isRedisThere: () => peers.isThere,
    async close() {
      await counts.close()
      changes.close()
      await Promise.all([peers.close(), announcements.close()])
    },
  }
}
