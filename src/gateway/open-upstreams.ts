import type { Settings } from '../domain/settings.ts'
import { loopMarker, type Secrets } from '../store/secrets.ts'
import { environmentProxies, type ProxyVariables } from '../upstreams/environment-proxies.ts'
import { Providers } from '../upstreams/providers.ts'
import { UpstreamClient, type UpstreamClientDependencies } from '../upstreams/upstream-client.ts'
import { tokenEndpoint } from '../upstreams/vertex/token-endpoint.ts'

/** The log's sentence about bytes that an upstream sends although no request waits for them. */
export const UNSOLICITED =
  'the upstream sent unrequested bytes; for ten minutes each call of this channel gets a connection of its own'

/** Creates the client for all upstreams. The caller closes it. */
export function openUpstreams(
  secrets: Secrets,
  proxies: ProxyVariables,
  settings: () => Settings,
  onUnsolicited: UpstreamClientDependencies['onUnsolicited'] = () => {},
): UpstreamClient {
  const proxyOf = environmentProxies(proxies)
  const allowsPrivateNetworks = (): boolean => settings().options.media.allow_private_networks
  return new UpstreamClient(loopMarker(secrets), {
    channels: () => settings().channels,
    providers: new Providers(tokenEndpoint(allowsPrivateNetworks, proxyOf)),
    proxyOf,
    onUnsolicited,
  })
}
