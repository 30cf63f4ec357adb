import type { Relay } from '../call/relay.ts'
import { McpEndpoint, type McpEndpointServices } from '../features/mcp/mcp-endpoint.ts'
import { McpServers } from '../features/mcp/servers.ts'
import { hmacOf, loopMarker, type Secrets } from '../store/secrets.ts'

/** Opens the endpoint for clients of MCP. Its connections to servers are made when they are needed. */
export function openMcp(
  secrets: Secrets,
  relay: Relay,
  services: Pick<McpEndpointServices, 'settings' | 'bodies' | 'metrics'>,
): { readonly endpoint: McpEndpoint } & AsyncDisposable {
  const servers = new McpServers(loopMarker(secrets))
  const sign = (text: string): string => hmacOf(secrets, 'mcp session', text)
  return {
    endpoint: new McpEndpoint({ ...services, servers, relay, sign }),
    [Symbol.asyncDispose]: () => servers.close(),
  }
}
