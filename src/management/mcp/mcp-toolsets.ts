import { z } from 'zod'
import type { JsonObject } from '../../domain/json.ts'
import type { McpToolset } from '../../domain/mcp.ts'
import { versionOf } from '../../domain/object-version.ts'
import { TEXT_BYTE_LIMITS } from '../../domain/text-length.ts'
import { GatewayError } from '../../errors.ts'
import { addCurrentObject } from '../expected-version.ts'
import { anyField, textField } from '../input-fields.ts'
import { type NamedSection, requireChangeable, setNamedEntry } from '../named-entries.ts'
import type { AdministrationServices } from '../services.ts'

const SECTION: NamedSection = { section: 'mcp_toolsets', noun: 'toolset', maximum: 200 }

/** A toolset as responses show it. */
export const mcpToolsetSchema = z.object({
  name: z.string(),
  tools: z.array(z.string()).describe('patterns SERVER.NAME'),
  groups: z.array(z.string()).nullable(),
  users: z.array(z.string()).nullable(),
  managed: z.boolean().describe('whether gateway.yaml declares it, so that it can be changed there alone'),
  managed_by: z.string(),
  version: z.string(),
})

type McpToolsetObject = z.output<typeof mcpToolsetSchema>

const nameField = textField('expected the name of a toolset', 64)
const member = anyField(TEXT_BYTE_LIMITS.list)

/** Input with a toolset in the form of gateway.yaml: a new one, or one that replaces that of the same name. */
export const mcpToolsetInput = z
  .object(
    {
      name: nameField,
      tools: member.optional(),
      groups: member.optional(),
      users: member.optional(),
    },
    { error: 'expected an object with name and tools' },
  )
  .catchall(member)

/** Path parameters with the name of a toolset. */
export const mcpToolsetPath = z.object({ name: nameField })

type McpServices = Pick<AdministrationServices, 'settings' | 'liveConfig' | 'store'>

/** All toolsets: first those in gateway.yaml, then those added over HTTP. */
export async function listMcpToolsets({ settings, store }: McpServices): Promise<McpToolsetObject[]> {
  const { entries } = await store.read('storedConfiguration')
  const stored = new Set(entries.flatMap(({ section, name }) => (section === SECTION.section ? [name] : [])))
  return settings().mcp.toolsets.map((toolset) => toolsetObject(toolset, stored.has(toolset.name)))
}

function toolsetObject({ name, tools, groups, users }: McpToolset, isStored: boolean): McpToolsetObject {
  const shown = { name, tools: [...tools], groups: listOf(groups), users: listOf(users) }
  return {
    ...shown,
    managed: !isStored,
    managed_by: isStored ? '' : 'gateway.yaml',
    version: versionOf([shown]),
  }
}

function listOf(names: readonly string[] | undefined): string[] | null {
  return names ? [...names] : null
}

/** Adds a toolset over HTTP. */
export async function addMcpToolset(
  services: McpServices,
  given: z.output<typeof mcpToolsetInput>,
): Promise<McpToolsetObject> {
  if (services.settings().mcp.toolsets.some(({ name }) => name === given.name))
    throw new GatewayError('invalid_request', `name: there is a toolset "${given.name}" already`)
  await setNamedEntry(services, SECTION, given.name, given as JsonObject)
  return present(services, given.name)
}

/** Replaces a toolset that was added over HTTP. */
export async function changeMcpToolset(
  services: McpServices,
  { version, ...given }: z.output<typeof mcpToolsetInput>,
): Promise<McpToolsetObject> {
  await addCurrentObject(
    async () => {
      requireChangeable(SECTION, await present(services, given.name), version)
      await setNamedEntry(services, SECTION, given.name, given as JsonObject)
    },
    () => present(services, given.name),
  )
  return present(services, given.name)
}

/** Removes a toolset that was added over HTTP. */
export async function removeMcpToolset(services: McpServices, name: string, version?: string): Promise<void> {
  requireChangeable(SECTION, await present(services, name), version)
  if (await services.store.read('isToolsetNamed', { name }))
    throw new GatewayError('in_use', `an API key is restricted to the toolset "${name}"`)
  await setNamedEntry(services, SECTION, name, undefined)
}

async function present(services: McpServices, name: string): Promise<McpToolsetObject> {
  const found = (await listMcpToolsets(services)).find((one) => one.name === name)
  if (!found) throw new GatewayError('not_found', `there is no toolset "${name}"`)
  return found
}
