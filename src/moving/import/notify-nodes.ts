import { randomUUID } from 'node:crypto'
import { formatChange } from '../../cluster/change-text.ts'
import { RedisAnnouncements } from '../../cluster/redis-announcements.ts'
import type { Environment } from '../../config/environment.ts'
import { NodeMessages } from '../../store/node-messages.ts'
import { Announcements } from '../../store/postgres/announcements.ts'
import type { Secrets } from '../../store/secrets.ts'

/**
 * Tells the nodes of a PostgreSQL database to reload everything, over Redis if they use it, where `namespace`
 * is theirs. Rejects if the announcement cannot be sent.
 */
export async function notifyNodes(
  { databaseUrl, redisUrl }: Environment,
  namespace: string,
  secrets: Secrets,
): Promise<void> {
  const messages = new NodeMessages(secrets)
  const announcements =
    redisUrl === undefined
      ? new Announcements(databaseUrl, messages)
      : new RedisAnnouncements(redisUrl, namespace, messages)
  try {
    await announcements.firstAttempt
    await announcements.announce(formatChange(randomUUID(), { of: 'anything' }))
  } finally {
    await announcements.close()
  }
}
