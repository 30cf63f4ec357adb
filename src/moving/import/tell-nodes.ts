import { randomUUID } from 'node:crypto'
import { formatChange } from '../../cluster/change-text.ts'
import { RedisAnnouncements } from '../../cluster/redis-announcements.ts'
import type { Environment } from '../../config/environment.ts'
import { Announcements } from '../../store/postgres/announcements.ts'

/**
 * Has the nodes that run on a PostgreSQL database read again what they know of it, over the way that they
 * listen on: `namespace` is theirs. Rejects where that way is out of order.
 */
export async function tellNodes({ databaseUrl, redisUrl }: Environment, namespace: string): Promise<void> {
  const way =
    redisUrl === undefined ? new Announcements(databaseUrl) : new RedisAnnouncements(redisUrl, namespace)
  try {
    await way.tried
    await way.announce(formatChange(randomUUID(), { of: 'anything' }))
  } finally {
    await way.close()
  }
}
