import type { Cluster } from '../cluster/join-cluster.ts'
import type { LimitFeed, LimitFeedOptions } from '../cluster/limit-feed.ts'

/** Shares limits of providers and cooldowns of keys with the other nodes; undefined where there are none. */
export async function shareLimits(
  { limitAnnouncer }: Cluster,
  options: Omit<LimitFeedOptions, 'announcer'>,
): Promise<LimitFeed | undefined> {
  if (!limitAnnouncer) return undefined
  // Loaded on demand: most gateways run alone.
  const { LimitFeed } = await import('../cluster/limit-feed.ts')
  return new LimitFeed({ ...options, announcer: limitAnnouncer })
}
