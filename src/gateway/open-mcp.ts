import type { Relay } from '../call/relay.ts'
import type { LiveConfig } from '../config/live-config.ts'
import { McpEndpoint, type McpEndpointServices } from '../features/mcp/mcp-endpoint.ts'
import { McpServers } from '../features/mcp/servers.ts'
import { mcpToolSource, ToolApprovals } from '../features/mcp/tool-approvals.ts'
import type { McpToolSource } from '../management/mcp/mcp-tools.ts'
import type { CallFindings } from './open-alerts.ts'
import { hmacOf, loopMarker, type Secrets } from '../store/secrets.ts'
import type { Store } from '../store/store.ts'

interface OpenedMcp extends AsyncDisposable {
  readonly endpoint: McpEndpoint
  readonly tools: McpToolSource
}

/** Opens the endpoint for clients of MCP. Its connections to servers are made when they are needed. */
export function openMcp(
  secrets: Secrets,
  relay: Relay,
  store: Pick<Store, 'write'>,
  liveConfig: LiveConfig,
  services: Pick<McpEndpointServices, 'settings' | 'bodies' | 'metrics'> &
    Pick<CallFindings, 'withheldTools'>,
): OpenedMcp {
  const servers = new McpServers(loopMarker(secrets))
  const sign = (text: string): string => hmacOf(secrets, 'mcp session', text)
  const mcp = () => services.settings().mcp
  const approvals = new ToolApprovals({ store, liveConfig, mcp, withheldTools: services.withheldTools })
  return {
    endpoint: new McpEndpoint({ ...services, servers, relay, approvals, sign }),
    tools: mcpToolSource(servers, approvals, mcp),
    [Symbol.asyncDispose]: () => servers.close(),
  }
}
