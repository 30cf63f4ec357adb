import { z } from 'zod'
import type { JsonObject } from '../../domain/json.ts'
import type { McpToolset } from '../../domain/mcp.ts'
import { TEXT_BYTE_LIMITS } from '../../domain/text-length.ts'
import { unknownScopes } from '../../domain/unknown-scopes.ts'
import { GatewayError } from '../../errors.ts'
import { addCurrentObject } from '../expected-version.ts'
import { anyField, textField } from '../input-fields.ts'
import {
  addNamedEntry,
  changeNamedEntry,
  managedFields,
  type NamedSection,
  storedValues,
} from '../named-entries.ts'
import type { AdministrationServices } from '../services.ts'

const SECTION: NamedSection<McpToolset> = {
  section: 'mcp_toolsets',
  noun: 'toolset',
  maximum: 200,
  entriesOf: ({ mcp }) => mcp.toolsets,
  content: shownSettings,
}

/** A toolset as responses show it. */
export const mcpToolsetSchema = z.object({
  name: z.string(),
  tools: z.array(z.string()).describe('patterns SERVER.NAME'),
  groups: z.array(z.string()).nullable(),
  users: z.array(z.string()).nullable(),
  managed: z.boolean().describe('whether gateway.yaml declares it, so that it can be changed there alone'),
  managed_by: z.string(),
  version: z.string(),
  warnings: z.array(z.string()).describe('groups, and servers of tools, that do not exist'),
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
  const stored = storedValues(await store.read('storedConfiguration'), SECTION)
  const unknown = unknownScopes(settings())
  return settings().mcp.toolsets.map((toolset) => ({
    ...shownSettings(toolset),
    ...managedFields(SECTION, toolset, stored.get(toolset.name)),
    warnings: unknown(toolset).map(({ message }) => message),
  }))
}

function shownSettings({ name, tools, groups, users }: McpToolset) {
  return { name, tools: [...tools], groups: listOf(groups), users: listOf(users) }
}

function listOf(names: readonly string[] | undefined): string[] | null {
  return names ? [...names] : null
}

/** Adds a toolset over HTTP. */
export async function addMcpToolset(
  services: McpServices,
  given: z.output<typeof mcpToolsetInput>,
): Promise<McpToolsetObject> {
  await addNamedEntry(services, SECTION, given.name, () => given as JsonObject)
  return present(services, given.name)
}

/** Replaces a toolset that was added over HTTP. */
export async function changeMcpToolset(
  services: McpServices,
  { version, ...given }: z.output<typeof mcpToolsetInput>,
): Promise<McpToolsetObject> {
  await addCurrentObject(
    () => changeNamedEntry(services, SECTION, { name: given.name, version }, () => given as JsonObject),
    () => present(services, given.name),
  )
  return present(services, given.name)
}

/** Removes a toolset that was added over HTTP. */
export async function removeMcpToolset(services: McpServices, name: string, version?: string): Promise<void> {
  const isNamed = await services.store.read('isToolsetNamed', { name })
  await changeNamedEntry(services, SECTION, { name, version }, () => {
    if (isNamed) throw new GatewayError('in_use', `an API key is restricted to the toolset "${name}"`)
    return undefined
  })
}

async function present(services: McpServices, name: string): Promise<McpToolsetObject> {
  const found = (await listMcpToolsets(services)).find((one) => one.name === name)
  if (!found) throw new GatewayError('not_found', `there is no toolset "${name}"`)
  return found
}
