import { z } from 'zod'
import {
  addMcpServer,
  changeMcpServer,
  listMcpServers,
  mcpServerInput,
  mcpServerPath,
  mcpServerSchema,
  mcpVersionQuery,
  removeMcpServer,
} from '../management/mcp/mcp-servers.ts'
import {
  addMcpToolset,
  changeMcpToolset,
  listMcpToolsets,
  mcpToolsetInput,
  mcpToolsetPath,
  mcpToolsetSchema,
  removeMcpToolset,
} from '../management/mcp/mcp-toolsets.ts'
import {
  approveMcpTool,
  listMcpTools,
  mcpApproval,
  mcpToolQuery,
  mcpToolSchema,
} from '../management/mcp/mcp-tools.ts'
import { renderError, type RenderedError } from './envelopes.ts'
import { type CallEndpoint, type ClientExchange, defineAdminEndpoint, type JsonEndpoint } from './endpoint.ts'

/** Statuses of refusals that clients of the protocol get as errors of JSON-RPC, with HTTP status 200. */
const IN_MESSAGE: ReadonlySet<number> = new Set([400, 403, 429])

/** The error with which a request is refused, as an answer to the message with this id. */
function refusalOf({ id }: ClientExchange, message: string | number, error: unknown): RenderedError {
  const { status, headers, body } = renderError('mcp', error, id)
  const answer = { ...(JSON.parse(body.toString()) as object), id: message }
  const bytes = Buffer.from(JSON.stringify(answer))
  const { 'x-should-retry': _, ...others } = headers
  return {
    status: IN_MESSAGE.has(status) ? 200 : status,
    headers: { ...others, 'content-length': String(bytes.length) },
    body: bytes,
  }
}

const MCP: Omit<CallEndpoint, 'path' | 'summary' | 'handle'> = {
  method: 'POST',
  area: 'mcp',
  kind: 'raw',
  access: 'api-key',
  keyIn: 'x-api-key',
  requestSchema: () => ({
    type: 'object',
    required: ['jsonrpc', 'method'],
    properties: {
      jsonrpc: { type: 'string', enum: ['2.0'] },
      id: { type: ['string', 'integer'] },
      method: { type: 'string' },
      params: { type: 'object' },
    },
  }),
  contentTypes: ['application/json', 'text/event-stream'],
  errorStatuses: [404],
  hiddenStatuses: [409, 422, 529],
  acceptsNotifications: true,
  repeats: 'never',
}

/** The endpoint for clients of the Model Context Protocol, with all toolsets of the key or one of them: `docs/mcp.md`. */
export const MCP_ENDPOINTS: readonly CallEndpoint[] = [
  {
    ...MCP,
    path: '/mcp',
    summary: 'A message of the Model Context Protocol, to all servers behind the gateway',
    handle: (exchange, caller, { mcp }) =>
      mcp.handle(exchange, caller, undefined, (id) => {
        exchange.renderRefusal = (error) => refusalOf(exchange, id, error)
      }),
  },
  {
    ...MCP,
    path: '/mcp/:toolset',
    summary: 'The same, with the tools of one toolset',
    handle: (exchange, caller, { mcp }, { toolset }) =>
      mcp.handle(exchange, caller, toolset, (id) => {
        exchange.renderRefusal = (error) => refusalOf(exchange, id, error)
      }),
  },
]

/** Endpoints to manage servers, toolsets and the approval of tools: `docs/mcp.md: Over HTTP`. */
export const MCP_MANAGEMENT_ENDPOINTS: readonly JsonEndpoint[] = [
  defineAdminEndpoint('GET', '/api/mcp/servers', {
    summary: 'The servers, with their states',
    responseBody: z.array(mcpServerSchema),
    handle: ({ services }) => listMcpServers(services),
  }),
  defineAdminEndpoint('POST', '/api/mcp/servers', {
    summary: 'A new server, in the form of gateway.yaml',
    body: mcpServerInput,
    responseBody: mcpServerSchema,
    handle: ({ body, services }) => addMcpServer(services, body),
  }),
  defineAdminEndpoint('PUT', '/api/mcp/servers', {
    summary: 'Replaces a server that was added over HTTP',
    errorStatuses: [404, 409],
    body: mcpServerInput,
    responseBody: mcpServerSchema,
    handle: ({ body, services }) => changeMcpServer(services, body),
  }),
  defineAdminEndpoint('DELETE', '/api/mcp/servers/:name', {
    summary: 'Removes a server that was added over HTTP',
    errorStatuses: [404, 409],
    params: mcpServerPath,
    query: mcpVersionQuery,
    handle: ({ params, query, services }) => removeMcpServer(services, params.name, query.version),
  }),
  defineAdminEndpoint('GET', '/api/mcp/toolsets', {
    summary: 'The toolsets',
    responseBody: z.array(mcpToolsetSchema),
    handle: ({ services }) => listMcpToolsets(services),
  }),
  defineAdminEndpoint('POST', '/api/mcp/toolsets', {
    summary: 'A new toolset, in the form of gateway.yaml',
    body: mcpToolsetInput,
    responseBody: mcpToolsetSchema,
    handle: ({ body, services }) => addMcpToolset(services, body),
  }),
  defineAdminEndpoint('PUT', '/api/mcp/toolsets', {
    summary: 'Replaces a toolset that was added over HTTP',
    errorStatuses: [404, 409],
    body: mcpToolsetInput,
    responseBody: mcpToolsetSchema,
    handle: ({ body, services }) => changeMcpToolset(services, body),
  }),
  defineAdminEndpoint('DELETE', '/api/mcp/toolsets/:name', {
    summary: 'Removes a toolset that was added over HTTP and that no key names',
    errorStatuses: [404, 409],
    params: mcpToolsetPath,
    query: mcpVersionQuery,
    handle: ({ params, query, services }) => removeMcpToolset(services, params.name, query.version),
  }),
  defineAdminEndpoint('GET', '/api/mcp/tools', {
    summary: 'The tools of MCP servers, with the definitions that are approved',
    errorStatuses: [400, 404],
    query: mcpToolQuery,
    responseBody: z.array(mcpToolSchema),
    handle: ({ query, services }) => listMcpTools(services, query.server),
  }),
  defineAdminEndpoint('POST', '/api/mcp/approve', {
    summary: 'Approves the present definition of a tool',
    errorStatuses: [404, 409],
    body: mcpApproval,
    responseBody: mcpToolSchema,
    handle: ({ body, services }) => approveMcpTool(services, body),
  }),
]
