import { randomUUID } from 'node:crypto'
import { formatChange } from '../../cluster/change-text.ts'
import { RedisAnnouncements } from '../../cluster/redis-announcements.ts'
import type { Environment } from '../../config/environment.ts'
import { Announcements } from '../../store/postgres/announcements.ts'

/**
 * Tells the nodes of a PostgreSQL database to reload everything, over Redis if they use it, where `namespace`
 * is theirs. Rejects if the announcement cannot be sent.
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
