import type { ApiKeys } from '../accounts/authentication/api-keys.ts'
import type { ClientAddress } from '../accounts/authentication/client-address.ts'
import { keyFromRequest } from '../accounts/authentication/key-from-request.ts'
import { renderError } from '../api/envelopes.ts'
import type { Relay } from '../call/relay.ts'
import type { LiveConfig } from '../config/live-config.ts'
import { McpEndpoint, type McpEndpointServices } from '../features/mcp/mcp-endpoint.ts'
import type { ResponseRoundServices } from '../features/mcp/response-rounds.ts'
import { McpServers } from '../features/mcp/servers.ts'
import { mcpToolSource, ToolApprovals } from '../features/mcp/tool-approvals.ts'
import { keepComposedAnswer } from '../features/stored-responses/keep-composed-answer.ts'
import type { ResponseStore } from '../features/stored-responses/response-store.ts'
import type { McpToolSource } from '../management/mcp/mcp-tools.ts'
import type { CallFindings } from './open-alerts.ts'
import { hmacOf, loopMarker, type Secrets } from '../store/secrets.ts'
import type { Store } from '../store/store.ts'

/** The endpoint for clients of MCP, and what else uses its servers. */
export interface OpenedMcp extends AsyncDisposable {
  readonly endpoint: McpEndpoint
  /** What is needed to call tools in the rounds of a response. */
  readonly rounds: ResponseRoundServices
  readonly tools: McpToolSource
}

/** Opens the endpoint for clients of MCP. Its connections to servers are made when they are needed. */
export function openMcp(
  secrets: Secrets,
  relay: Relay,
  store: Pick<Store, 'read' | 'write'>,
  liveConfig: LiveConfig,
  services: Pick<McpEndpointServices, 'settings' | 'bodies' | 'metrics'> &
    Pick<CallFindings, 'withheldTools'> &
    Pick<ResponseRoundServices, 'noteRefusal' | 'memory'> & {
      readonly responses: ResponseStore
      readonly apiKeys: ApiKeys
      readonly clientAddress: () => ClientAddress
    },
): OpenedMcp {
  const servers = new McpServers(loopMarker(secrets))
  const sign = (text: string): string => hmacOf(secrets, 'mcp session', text)
  const mcp = () => services.settings().mcp
  const approvals = new ToolApprovals({ store, liveConfig, mcp, withheldTools: services.withheldTools })
  const endpoint = new McpEndpoint({ ...services, servers, relay, approvals, sign })
  const { responses, apiKeys, clientAddress, noteRefusal, memory } = services
  return {
    endpoint,
    rounds: {
      relay,
      memory,
      endpoint,
      keep: (request) => keepComposedAnswer(request, responses),
      async callerNow({ request }, { token, user }) {
        // The playground names a key in its requests, and lines of batches have none. The playground's bearer may be an
        // access token.
        const sent = request.url.startsWith('/api/playground/')
          ? undefined
          : keyFromRequest(request, 'bearer')
        const key = sent ?? (await store.read('revealKey', { tokenId: token.id, userId: user.id }))
        return apiKeys.authenticate(key ?? '', clientAddress()(request))
      },
      renderError: (error, id) => renderError('relay', error, id),
      noteRefusal,
    },
    tools: mcpToolSource(servers, approvals, mcp),
    [Symbol.asyncDispose]: () => servers.close(),
  }
}
