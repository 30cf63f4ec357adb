import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { mcpServerInput, mcpServerSchema } from '../../src/management/mcp/mcp-servers.ts'
import type { McpToolObject } from '../../src/management/mcp/mcp-tools.ts'
import type { mcpToolsetInput, mcpToolsetSchema } from '../../src/management/mcp/mcp-toolsets.ts'
import { request } from './client.ts'

/** An MCP server with its state. */
export type McpServer = z.output<typeof mcpServerSchema>

/** A server in the form of gateway.yaml. */
export type McpServerFields = z.input<typeof mcpServerInput>

/** A tool with its present definition and the approved one. */
export type McpTool = McpToolObject

export type McpToolset = z.output<typeof mcpToolsetSchema>

/** A toolset in the form of gateway.yaml. */
export type McpToolsetFields = z.input<typeof mcpToolsetInput>

/** The servers with their states, after each of them was asked for its tools; those from gateway.yaml come first. */
export function mcpServersQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'mcp', 'servers'],
    queryFn: async () => {
      const tools = await request<readonly McpTool[]>('GET', '/api/mcp/tools')
      return { tools, servers: await request<readonly McpServer[]>('GET', '/api/mcp/servers') }
    },
  })
}

export function mcpToolsetsQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'mcp', 'toolsets'],
    queryFn: () => request<readonly McpToolset[]>('GET', '/api/mcp/toolsets'),
  })
}

/** Adds a server, or replaces the one of its name. */
export function saveMcpServer(fields: McpServerFields, isNew: boolean): Promise<McpServer> {
  return request<McpServer>(isNew ? 'POST' : 'PUT', '/api/mcp/servers', fields)
}

/** Adds a toolset, or replaces the one of its name. */
export function saveMcpToolset(fields: McpToolsetFields, isNew: boolean): Promise<McpToolset> {
  return request<McpToolset>(isNew ? 'POST' : 'PUT', '/api/mcp/toolsets', fields)
}

/** Removes a server or a toolset. */
export async function deleteMcpEntry(list: 'servers' | 'toolsets', name: string): Promise<void> {
  await request('DELETE', `/api/mcp/${list}/${encodeURIComponent(name)}`)
}

/** Approves the present definition of a tool. */
export async function approveMcpTool({ server, tool, digest }: McpTool): Promise<void> {
  await request('POST', '/api/mcp/approve', { server, tool, digest })
}
