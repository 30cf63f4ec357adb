import { randomUUID } from 'node:crypto'
import { formatChange } from '../../cluster/change-text.ts'
import { RedisAnnouncements } from '../../cluster/redis-announcements.ts'
import type { Environment } from '../../config/environment.ts'
import { Announcements } from '../../store/postgres/announcements.ts'

/**
 * Has the nodes that run on a PostgreSQL database read again what they know of it, over the way that they
 * listen on: `namespace` is theirs. Rejects where that way is out of order.
 */
export async function notifyNodes({ databaseUrl, redisUrl }: Environment, namespace: string): Promise<void> {
  const announcements =
    redisUrl === undefined ? new Announcements(databaseUrl) : new RedisAnnouncements(redisUrl, namespace)
  try {
    await announcements.firstAttempt
    await announcements.announce(formatChange(randomUUID(), { of: 'anything' }))
  } finally {
    await announcements.close()
  }
}
