import type { Cluster } from '../cluster/join-cluster.ts'
import type { LimitFeed, LimitFeedOptions } from '../cluster/limit-feed.ts'
import type { Settings } from '../domain/settings.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { ProviderLimits } from '../upstreams/provider-limits.ts'

interface SharedServices extends Pick<LimitFeedOptions, 'node' | 'namespace' | 'secrets' | 'keyRings'> {
  readonly settings: () => Settings
  readonly providerLimits: ProviderLimits
  readonly metrics: Pick<Metrics, 'add'>
}

/**
 * Exchanges providers' rate limits and keys in cooldown with the other nodes; undefined if there are no other
 * nodes.
 */
export async function shareProviderLimits(
  { limitAnnouncer }: Cluster,
  { node, namespace, secrets, settings, providerLimits: limits, keyRings, metrics }: SharedServices,
): Promise<LimitFeed | undefined> {
  if (!limitAnnouncer) return undefined
  // The module is loaded on demand, because most gateways have no other nodes.
  const { LimitFeed } = await import('../cluster/limit-feed.ts')
  const channels = (): Settings['channels'] => settings().channels
  return new LimitFeed({
    node,
    namespace,
    secrets,
    announcer: limitAnnouncer,
    channels,
    limits,
    keyRings,
    onUntrusted: () => metrics.add('untrustedEntries', 1, 'limits'),
  })
}
