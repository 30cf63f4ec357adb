import type { Settings } from '../../domain/settings.ts'
import { loopMarker, type Secrets } from '../../store/secrets.ts'
import { Providers } from '../../upstreams/providers.ts'
import { UpstreamClient } from '../../upstreams/upstream-client.ts'
import { tokenEndpoint } from '../../upstreams/vertex/token-endpoint.ts'

/** Opens an upstream client for a command that runs without a gateway. The caller closes it. */
export function localUpstreams(secrets: Secrets, settings: () => Settings): UpstreamClient {
  return new UpstreamClient(loopMarker(secrets), {
    channels: () => settings().channels,
    providers: new Providers(tokenEndpoint(() => settings().options.media.allow_private_networks)),
    onUnsolicited() {},
  })
}
