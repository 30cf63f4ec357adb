import { z } from 'zod'
import type { Json, JsonObject } from '../../domain/json.ts'
import type { McpVersion } from '../../domain/mcp.ts'
import { GatewayError } from '../../errors.ts'
import { readInput, textField } from '../input-fields.ts'
import type { AdministrationServices } from '../services.ts'

/** Maximum size of a definition that is kept beside its digest, so that it can be compared. */
const MAX_DEFINITION_BYTES = 65_536

/** A tool as its server defines it at present. */
export interface PresentTool {
  readonly server: string
  readonly tool: string
  /** `invalid`: the definition breaks a rule of the protocol, so that the tool is left out of all lists. */
  readonly state: 'approved' | 'changed' | 'new' | 'invalid'
  readonly digest: string
  readonly definition: Readonly<Record<string, unknown>>
}

/** What this node knows of the servers behind the gateway. */
export interface McpToolSource {
  /** The tools of all servers, or of one of them. Servers that fail have none. */
  list(server: string | undefined): Promise<readonly PresentTool[]>
  /** Whether each server answers, by the last request, and the revision that it was found to speak. */
  states(): ReadonlyMap<string, { readonly state: McpServerState; readonly version: McpVersion | undefined }>
}

/** Whether a server answers. */
export type McpServerState = 'ok' | 'unavailable' | 'unauthorized'

const definition = z.record(z.string(), z.unknown())

export const mcpToolSchema = z.object({
  server: z.string(),
  tool: z.string().describe('the name that the server gives it'),
  state: z.enum(['approved', 'changed', 'new', 'invalid']),
  digest: z.string(),
  approved_digest: z.string().nullable(),
  definition,
  approved_definition: definition.nullable(),
})

/** A tool as responses show it. */
export type McpToolObject = z.output<typeof mcpToolSchema>

const name = textField('expected a name', 128)

/** Query parameters with the name of a server; all servers without it. */
export const mcpToolQuery = z.object({ server: name.optional() })

/** Input with the definition that is approved. */
export const mcpApproval = z.object(
  { server: name, tool: name, digest: textField('expected the digest of the present definition', 128) },
  { error: 'expected an object with server, tool and digest' },
)

type McpServices = Pick<AdministrationServices, 'settings' | 'liveConfig' | 'store'> & {
  /** Undefined in a command without a running gateway. */
  readonly mcpTools?: McpToolSource
}

/** The tools with their definitions, and those that are approved. */
export async function listMcpTools(
  { mcpTools, settings }: Pick<McpServices, 'mcpTools' | 'settings'>,
  server: string | undefined,
): Promise<McpToolObject[]> {
  if (!mcpTools)
    throw new GatewayError(
      'invalid_request',
      'no gateway runs on this data folder, which could ask the servers',
    )
  const { approved, servers } = settings().mcp
  if (server !== undefined && !servers.some(({ name: known }) => known === server))
    throw new GatewayError('not_found', `there is no server "${server}"`)
  const tools = await mcpTools.list(server)
  return tools.map((one) => {
    const known = approved.get(`${one.server}_${one.tool}`)
    return {
      ...one,
      approved_digest: known?.digest ?? null,
      definition: { ...one.definition },
      approved_definition: known ? { ...known.definition } : null,
    }
  })
}

/** The same, for a command. */
export function listToolsOfServers(
  services: McpServices,
  given: z.input<typeof mcpToolQuery>,
): Promise<McpToolObject[]> {
  return listMcpTools(services, readInput(mcpToolQuery, given).server)
}

/** One tool. */
export async function showMcpTool(
  services: McpServices,
  given: { readonly server: string; readonly tool: string },
): Promise<McpToolObject> {
  const { server, tool } = readInput(z.object({ server: name, tool: name }), given)
  const found = (await listMcpTools(services, server)).find((one) => one.tool === tool)
  if (!found) throw new GatewayError('not_found', 'there is no such tool')
  return found
}

/** Approves the present definition of a tool, in place of an earlier one. */
export async function approveMcpTool(
  services: McpServices,
  given: z.input<typeof mcpApproval>,
): Promise<McpToolObject> {
  const { server, tool, digest } = readInput(mcpApproval, given)
  const { liveConfig, store } = services
  const found = await showMcpTool(services, { server, tool })
  if (found.state === 'invalid') throw new GatewayError('not_found', 'there is no such tool')
  if (found.digest !== digest)
    throw new GatewayError('changed_meanwhile', 'the tool has another definition now')
  const entry = { section: 'mcp_tools', name: `${server}_${tool}`, value: approvalOf(found) } as const
  await liveConfig.change(
    (stored) => {
      const others = stored.entries.filter((one) => one.section !== entry.section || one.name !== entry.name)
      return { ...stored, entries: [...others, entry] }
    },
    () => store.write('approveTool', { name: entry.name, value: entry.value }),
  )
  return showMcpTool(services, { server, tool })
}

/** The entry of an approved definition, as it is stored. */
export function approvalOf({ digest, definition: given }: Pick<PresentTool, 'digest' | 'definition'>): Json {
  const text = JSON.stringify(given)
  return { digest, definition: text.length <= MAX_DEFINITION_BYTES ? (JSON.parse(text) as JsonObject) : {} }
}
