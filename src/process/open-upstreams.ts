import type { Logger } from 'pino'
import type { Settings } from '../domain/settings.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { loopMarker, type Secrets } from '../store/secrets.ts'
import { Providers } from '../upstreams/providers.ts'
import { UpstreamClient } from '../upstreams/upstream-client.ts'
import { tokenEndpoint } from '../upstreams/vertex/token-endpoint.ts'

const UNASKED =
  'the upstream sent unrequested bytes; for ten minutes each call of this channel gets a connection of its own'

/** Makes the client of all upstreams, which counts and logs what they send unrequested. */
export function openUpstreams(
  secrets: Secrets,
  { settings, metrics, log }: { settings: () => Settings; metrics: Metrics; log: Logger },
): UpstreamClient {
  return new UpstreamClient(loopMarker(secrets), {
    channels: () => settings().channels,
    providers: new Providers(tokenEndpoint(() => settings().options.media.allow_private_networks)),
    onUnsolicited(channel, isNews) {
      metrics.add('unsolicitedBytes', 1, channel)
      if (isNews) log.warn({ channel }, UNASKED)
    },
  })
}
