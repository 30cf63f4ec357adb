import { ZERO } from '../domain/decimal.ts'
import {
  MCP_APPROVALS,
  MCP_VERSIONS,
  type McpAuth,
  type McpServer,
  type McpSettings,
  type McpToolset,
} from '../domain/mcp.ts'
import { pointsToMetadataAddress } from '../domain/metadata-address.ts'
import {
  credentialSchema,
  decimalSchema,
  dictionarySchema,
  durationSchema,
  type Field,
  type Issue,
  kindOf,
  listSchema,
  nameSchema,
  oneOfSchema,
  sectionSchema,
  secretSchema,
  sizeSchema,
  textSchema,
} from './fields.ts'
import { headersSchema } from './header-fields.ts'
import { requestLimitSchema } from './rate-limits.ts'
import { childOfNode, itemsOfNode, type YamlNode, YamlScalar } from './yaml-node.ts'

const MINUTE = 60_000
const MAX_TIMEOUT_MS = 60 * MINUTE
const MAX_LIST_TTL_MS = 60 * MINUTE
const MEBIBYTE = 1_048_576

// The first `_` of a listed name divides it into the server and the tool, so that a server's name has none.
const serverName = textSchema(
  'a name of 1 to 32 lowercase letters, digits and hyphens that begins with a letter',
  (given) => (/^[a-z][a-z0-9-]{0,31}$/.test(given) ? given : undefined),
)

// Addresses may contain passwords, so messages do not repeat them.
const address: Field<string> = secretSchema(
  "an http:// or https:// URL without a user and a fragment, and not of a cloud's metadata service",
  (given) => {
    const parsed = /^https?:\/\//i.test(given) && !/[\s\\#]/.test(given) ? URL.parse(given) : null
    if (!parsed || parsed.username !== '' || parsed.password !== '') return undefined
    return pointsToMetadataAddress(given) ? undefined : given
  },
)

/** Headers of the protocol, which the gateway makes itself. */
const isProtocolHeader = (name: string): boolean =>
  /^(?:mcp-.*|accept|origin|last-event-id|traceparent|tracestate|baggage)$/i.test(name)

const AUTH_FIELDS = {
  none: [],
  header: ['headers'],
  oauth_client: ['token_url', 'client_id', 'client_secret'],
} as const
/** Fields that only some kinds of `auth` have. */
const ALL_AUTH_FIELDS = [...AUTH_FIELDS.header, ...AUTH_FIELDS.oauth_client, 'scope'] as const

/** Schema of a server: `docs/configuration.md: MCP`. */
export const mcpServerSchema: Field<McpServer> = sectionSchema({
  name: serverName,
  url: address,
  era: oneOfSchema(['auto', ...MCP_VERSIONS]).default('auto'),
  auth: oneOfSchema(['none', 'header', 'oauth_client']).default('none'),
  headers: headersSchema(isProtocolHeader).optional(),
  token_url: address.optional(),
  client_id: nameSchema('the id of an OAuth client').optional(),
  client_secret: credentialSchema('a secret: printable characters without spaces').optional(),
  scope: textSchema('scopes, separated by spaces', (given) =>
    /^[!#-[\]-~]+(?: [!#-[\]-~]+)*$/.test(given) ? given : undefined,
  ).optional(),
  timeout: durationSchema.default(MINUTE),
  list_ttl: durationSchema.default(MINUTE),
  most_answer: sizeSchema(1024, 256 * MEBIBYTE).default(10 * MEBIBYTE),
  price: sectionSchema({
    call: decimalSchema().default(ZERO),
    tools: dictionarySchema(decimalSchema(), 'a mapping from names of tools to prices'),
  }),
  rate_limit: requestLimitSchema(MINUTE),
  approve: oneOfSchema(MCP_APPROVALS).default('first'),
})
  .superRefine((given, ctx) => {
    const refuse = (name: string, message: string): void => {
      ctx.addIssue({ code: 'custom', path: [name], message })
    }
    const { auth } = given
    const needed: readonly string[] = AUTH_FIELDS[auth]
    for (const name of ALL_AUTH_FIELDS) {
      const isGiven = given[name] !== undefined
      const isAllowed = needed.includes(name) || (name === 'scope' && auth === 'oauth_client')
      if (isGiven && !isAllowed) refuse(name, `expected no ${name} with auth: ${auth}`)
      if (!isGiven && needed.includes(name)) refuse(name, `expected ${name}, which auth: ${auth} needs`)
    }
    if (auth === 'header' && Object.keys(given.headers ?? {}).length === 0)
      refuse('headers', 'expected at least one header')
    if (given.timeout > MAX_TIMEOUT_MS) refuse('timeout', 'expected a duration of at most 60m')
    if (given.list_ttl > MAX_LIST_TTL_MS) refuse('list_ttl', 'expected a duration of at most 60m')
  })
  .transform(({ auth, headers, token_url, client_id, client_secret, scope, ...server }): McpServer => {
    return { ...server, auth: authOf({ auth, headers, token_url, client_id, client_secret, scope }) }
  })

interface GivenAuth {
  readonly auth: McpAuth['kind']
  readonly headers: Readonly<Record<string, string>> | undefined
  readonly token_url: string | undefined
  readonly client_id: string | undefined
  readonly client_secret: string | undefined
  readonly scope: string | undefined
}

function authOf({ auth, headers = {}, token_url, client_id, client_secret, scope }: GivenAuth): McpAuth {
  switch (auth) {
    case 'none':
      return { kind: auth }
    case 'header':
      return { kind: auth, headers }
    case 'oauth_client':
      return {
        kind: auth,
        token_url: token_url ?? '',
        client_id: client_id ?? '',
        client_secret: client_secret ?? '',
        scope,
      }
  }
}

const pattern = textSchema('a pattern SERVER.NAME, in which * stands for any characters', (given) =>
  /^[a-z0-9*-]{1,64}\.[A-Za-z0-9_.*-]{1,256}$/.test(given) ? given : undefined,
)

const scope = (what: string): Field<readonly string[] | undefined> =>
  listSchema(nameSchema(what), `a list of at least one: ${what}`, 1).optional()

/** Schema of a toolset: `docs/configuration.md: MCP`. */
export const mcpToolsetSchema: Field<McpToolset> = sectionSchema({
  name: textSchema('a name of 1 to 64 letters, digits, dots, hyphens and underscores', (given) =>
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(given) ? given : undefined,
  ),
  tools: listSchema(pattern, 'a list of at least one pattern SERVER.NAME', 1),
  groups: scope('the name of a group'),
  users: scope('the name of a user'),
}).transform(({ name, tools, groups, users }): McpToolset => ({ name, tools, groups, users }))

/** Errors for the toolsets of API keys that the section does not declare. */
export function unknownToolsets(tree: YamlNode): Issue[] {
  const names = itemsOfNode(childOfNode(childOfNode(tree, 'mcp'), 'toolsets')).map((one) =>
    childOfNode(one, 'name'),
  )
  const declared = new Set(names.flatMap((name) => (name instanceof YamlScalar ? [String(name.value)] : [])))
  return itemsOfNode(childOfNode(tree, 'users')).flatMap((user, u) =>
    itemsOfNode(childOfNode(user, 'tokens')).flatMap((token, t) =>
      itemsOfNode(childOfNode(token, 'toolsets')).flatMap((one, index): Issue[] => {
        if (!(one instanceof YamlScalar) || declared.has(String(one.value))) return []
        const message = `expected a toolset that mcp.toolsets declares, found ${kindOf(one)}`
        return [{ path: ['users', u, 'tokens', t, 'toolsets', index], message }]
      }),
    ),
  )
}

/** Schema of the section `mcp`. */
export const mcpSchema: Field<McpSettings> = sectionSchema({
  servers: listSchema(mcpServerSchema, 'a list of servers'),
  toolsets: listSchema(mcpToolsetSchema, 'a list of toolsets'),
}).transform(
  (given): McpSettings => ({
    ...given,
    isRestricted: given.toolsets.length > 0,
    approved: new Map(),
  }),
)
