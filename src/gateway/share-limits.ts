import type { Cluster } from '../cluster/join-cluster.ts'
import type { LimitFeed, LimitFeedOptions } from '../cluster/limit-feed.ts'
import type { Settings } from '../domain/settings.ts'
import type { ProviderLimits } from '../upstreams/provider-limits.ts'

interface SharedServices extends Pick<LimitFeedOptions, 'node' | 'namespace' | 'secrets' | 'keyRings'> {
  readonly settings: () => Settings
  readonly providerLimits: ProviderLimits
}

/** Shares limits of providers and cooldowns of keys with the other nodes; undefined where there are none. */
export async function shareLimits(
  { limitAnnouncer }: Cluster,
  { node, namespace, secrets, settings, providerLimits: limits, keyRings }: SharedServices,
): Promise<LimitFeed | undefined> {
  if (!limitAnnouncer) return undefined
  // Loaded on demand: most gateways run alone.
  const { LimitFeed } = await import('../cluster/limit-feed.ts')
  const channels = (): Settings['channels'] => settings().channels
  return new LimitFeed({ node, namespace, secrets, announcer: limitAnnouncer, channels, limits, keyRings })
}
