import { z } from 'zod'
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

/** Endpoints to approve the definitions of tools: `docs/mcp.md: Approval`. */
export const MCP_TOOL_ENDPOINTS: readonly JsonEndpoint[] = [
  defineAdminEndpoint('GET', '/api/mcp/tools', {
    summary: 'The tools of MCP servers, with the definitions that are approved',
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
