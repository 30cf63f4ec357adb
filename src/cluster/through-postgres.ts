import { Changes } from './changes.ts'
import { peersApart } from '../limits/peers.ts'
import { SharedCounts } from '../limits/shared-counts.ts'
import { Announcements } from '../store/postgres/announcements.ts'
import type { Nodes, NodesOptions } from './join.ts'
import { Presence } from './presence.ts'

/**
 * Joins the nodes on one PostgreSQL database: they hear what each changes, and each has its share of every
 * limit.
 */
export async function joinThroughPostgres(url: string, options: NodesOptions): Promise<Nodes> {
  const { node } = options
  const announcements = new Announcements(url)
  const changes = new Changes(node, announcements)
  const presence = new Presence(node, announcements)
  const counts = new SharedCounts(peersApart(() => presence.count))
  await announcements.tried
  return {
    counts,
    changes,
    isRedisThere: undefined,
    async close() {
      await counts.close()
      changes.close()
      presence.close()
      await announcements.close()
    },
  }
}
