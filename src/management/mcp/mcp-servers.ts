import { z } from 'zod'
import { HIDDEN_SECRET } from '../../domain/guard.ts'
import { decimalText } from '../../domain/decimal.ts'
import { asObject, type Json, type JsonObject } from '../../domain/json.ts'
import { MCP_APPROVALS, MCP_VERSIONS, type McpAuth, type McpServer } from '../../domain/mcp.ts'
import { TEXT_BYTE_LIMITS } from '../../domain/text-length.ts'
import { GatewayError } from '../../errors.ts'
import { addCurrentObject, versionField } from '../expected-version.ts'
import { anyField, textField } from '../input-fields.ts'
import {
  addNamedEntry,
  changeNamedEntry,
  managedFields,
  type NamedSection,
  storedValues,
} from '../named-entries.ts'
import type { AdministrationServices } from '../services.ts'
import type { McpToolSource } from './mcp-tools.ts'

const SECTION: NamedSection<McpServer> = {
  section: 'mcp_servers',
  noun: 'server',
  maximum: 200,
  entriesOf: ({ mcp }) => mcp.servers,
  content: wholeText,
}

const ERAS = ['auto', ...MCP_VERSIONS] as const

/** A server as responses show it. Secrets are replaced by `***`. */
export const mcpServerSchema = z.object({
  name: z.string(),
  url: z.string(),
  declared_era: z.enum(ERAS).describe('as declared'),
  auth: z.enum(['none', 'header', 'oauth_client']),
  headers: z.record(z.string(), z.string()).nullable(),
  token_url: z.string().nullable(),
  client_id: z.string().nullable(),
  client_secret: z.string().nullable(),
  scope: z.string().nullable(),
  timeout: z.int().describe('milliseconds'),
  list_ttl: z.int().describe('milliseconds'),
  most_answer: z.int().describe('bytes'),
  price: z.object({ call: z.string(), tools: z.record(z.string(), z.string()) }),
  rate_limit: z.object({ requests: z.int(), window: z.int().describe('milliseconds') }),
  approve: z.enum(MCP_APPROVALS),
  state: z
    .enum(['ok', 'unavailable', 'unauthorized'])
    .nullable()
    .describe('by the last request of this node; null if no gateway runs'),
  era: z.enum(ERAS).describe('the revision that was found; as declared until a request was made'),
  managed: z.boolean().describe('whether gateway.yaml declares it, so that it can be changed there alone'),
  managed_by: z.string(),
  version: z.string(),
})

type McpServerObject = z.output<typeof mcpServerSchema>

const nameField = textField('expected the name of a server', 32)

/** A setting of a server, in the form that it has in gateway.yaml, whose schema checks it later. */
const member = anyField(TEXT_BYTE_LIMITS.list)

/** Input with a server in the form of gateway.yaml: a new one, or one that replaces that of the same name. */
export const mcpServerInput = z
  .object(
    {
      name: nameField,
      url: member.optional(),
      era: member.optional(),
      auth: member.optional(),
      headers: member.optional(),
      token_url: member.optional(),
      client_id: member.optional(),
      client_secret: member.optional(),
      scope: member.optional(),
      timeout: member.optional(),
      list_ttl: member.optional(),
      most_answer: member.optional(),
      price: member.optional(),
      rate_limit: member.optional(),
      approve: member.optional(),
    },
    { error: 'expected an object with name and url' },
  )
  .catchall(member)

/** Path parameters with the name of a server. */
export const mcpServerPath = z.object({ name: nameField })

/** Query parameters with the version on which a deletion is based. */
export const mcpVersionQuery = z.object({ version: versionField.optional() })

type McpServices = Pick<AdministrationServices, 'settings' | 'liveConfig' | 'store'> & {
  /** Undefined in a command without a running gateway. */
  readonly mcpTools?: McpToolSource
}

/** All servers: first those in gateway.yaml, then those added over HTTP. */
export async function listMcpServers({ mcpTools, settings, store }: McpServices): Promise<McpServerObject[]> {
  const stored = storedValues(await store.read('storedConfiguration'), SECTION)
  const states = mcpTools?.states()
  return settings().mcp.servers.map((server) => {
    const { state = null, version } = states?.get(server.name) ?? {}
    return {
      ...serverObject(server),
      state,
      era: version ?? server.era,
      ...managedFields(SECTION, server, stored.get(server.name)),
    }
  })
}

/** All settings of a server, secrets included, as a text from which its version is made. */
function wholeText({ price, ...server }: McpServer): string {
  return JSON.stringify([server, priceObject(price)])
}

function priceObject({ call, tools }: McpServer['price']): McpServerObject['price'] {
  const named = [...tools].map(([name, price]) => [name, decimalText(price)])
  return { call: decimalText(call), tools: Object.fromEntries(named) as Record<string, string> }
}

function serverObject({ era, auth, price, rate_limit: limit, ...server }: McpServer) {
  return {
    ...server,
    declared_era: era,
    auth: auth.kind,
    ...authObject(auth),
    price: priceObject(price),
    rate_limit: { requests: limit.requests, window: limit.windowMs },
  }
}

function authObject(
  auth: McpAuth,
): Pick<McpServerObject, 'headers' | 'token_url' | 'client_id' | 'client_secret' | 'scope'> {
  const none = { headers: null, token_url: null, client_id: null, client_secret: null, scope: null }
  switch (auth.kind) {
    case 'none':
      return none
    case 'header': {
      const hidden = Object.keys(auth.headers).map((name) => [name, HIDDEN_SECRET])
      return { ...none, headers: Object.fromEntries(hidden) as Record<string, string> }
    }
    case 'oauth_client': {
      const { token_url, client_id, scope = null } = auth
      return { ...none, token_url, client_id, client_secret: HIDDEN_SECRET, scope }
    }
  }
}

/** Adds a server over HTTP. */
export async function addMcpServer(
  services: McpServices,
  given: z.output<typeof mcpServerInput>,
): Promise<McpServerObject> {
  await addNamedEntry(services, SECTION, given.name, () => withSecrets(given as JsonObject, undefined))
  return present(services, given.name)
}

/** Replaces a server that was added over HTTP. */
export async function changeMcpServer(
  services: McpServices,
  { version, ...given }: z.output<typeof mcpServerInput>,
): Promise<McpServerObject> {
  await addCurrentObject(
    () =>
      changeNamedEntry(services, SECTION, { name: given.name, version }, (replaced) =>
        withSecrets(given as JsonObject, replaced),
      ),
    () => present(services, given.name),
  )
  return present(services, given.name)
}

/** Removes a server that was added over HTTP. What was approved of its tools stays approved. */
export function removeMcpServer(services: McpServices, name: string, version?: string): Promise<void> {
  return changeNamedEntry(services, SECTION, { name, version }, () => undefined)
}

async function present(services: McpServices, name: string): Promise<McpServerObject> {
  const found = (await listMcpServers(services)).find((one) => one.name === name)
  if (!found) throw new GatewayError('not_found', `there is no server "${name}"`)
  return found
}

/**
 * Fills hidden secrets (`***`) with those of the server that is replaced. Throws `invalid_request` if it has none, or if an
 * address has changed: a secret must not be sent to an address for which it was not meant.
 */
function withSecrets(given: JsonObject, replaced: McpServer | undefined): JsonObject {
  const auth = replaced?.url === given['url'] ? replaced?.auth : undefined
  const known = auth?.kind === 'header' ? auth.headers : {}
  const hasTokenUrl = auth?.kind === 'oauth_client' && auth.token_url === given['token_url']
  const { headers, client_secret: secret } = given
  const named = Object.entries(asObject(headers ?? null))
  return {
    ...given,
    ...(named.length > 0 && {
      headers: Object.fromEntries(named.map(([name, value]) => [name, kept(value, known[name], 'headers')])),
    }),
    ...(secret !== undefined && {
      client_secret: kept(secret, hasTokenUrl ? auth.client_secret : undefined, 'client_secret'),
    }),
  }
}

function kept(value: Json, before: string | undefined, field: string): Json {
  if (value !== HIDDEN_SECRET) return value
  if (before !== undefined) return before
  throw new GatewayError(
    'invalid_request',
    `${field}: expected it in full, as "${HIDDEN_SECRET}" stands only for what this server has at the same address`,
  )
}
