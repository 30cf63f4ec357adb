import { asRecord } from '@sluice/wire/json/record'
import type { JsonSchema } from '@sluice/wire/field-check'
import { z } from 'zod'
import type { KeyLocations } from '../accounts/authentication/key-from-request.ts'
import { type ErrorCode, ERRORS, GatewayError } from '../errors.ts'
import { headerParameters, responseHeaders } from './call-headers.ts'
import {
  defineEndpoint,
  type Endpoint,
  isCallEndpoint,
  type JsonEndpoint,
  type CallEndpoint,
  type TextFormat,
} from './endpoint.ts'
import { type ApiArea, hasEnvelope, inEnvelope, renderError } from './envelopes.ts'
import { isGloballyLimited } from './global-limit.ts'
import { parameterNames } from './paths.ts'

const DESCRIPTION =
  'A gateway in front of language models. A request whose head cannot be read, or takes too long, reaches none of ' +
  'these operations: it gets 400, 408, 417 or 431. A method that a path does not take gets 405.'

/** Describes all endpoints as OpenAPI 3.1, based on the schemas that check requests and responses. */
export function openApiDocument(routes: readonly Endpoint[], basePath = ''): object {
  const paths = new Map<string, Record<string, unknown>>()
  for (const route of routes) {
    const path = templateOf(route)
    paths.set(path, { ...paths.get(path), [route.method.toLowerCase()]: operationOf(route) })
  }
  const areas = [...new Set(routes.flatMap(areasOf))]
  return {
    openapi: '3.1.0',
    info: { title: 'Sluice', version: '1', description: DESCRIPTION },
    servers: [{ url: basePath || '/' }],
    tags: areas.map((name) => ({ name })),
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: SECURITY_SCHEMES,
      schemas: Object.fromEntries(areas.map((area) => [`error-${area}`, errorSchema(area)])),
    },
  }
}

/** The areas in whose format an endpoint may send errors. */
function areasOf({ area, otherAreas = [] }: Endpoint): readonly ApiArea[] {
  return [area, ...otherAreas]
}

/**
 * Endpoint for the OpenAPI document: `docs/api.md: Description`. It is built at the first request and then
 * cached.
 */
export function openApi(routes: () => readonly Endpoint[]): JsonEndpoint {
  const cached = { basePath: '', text: '' }
  return defineEndpoint({
    method: 'GET',
    path: '/openapi.json',
    area: 'relay',
    access: 'visitor',
    summary: 'This description',
    text: { type: 'application/json' },
    // oxlint-disable-next-line typescript/require-await
    handle: async ({ services }) => {
      const { base_path: basePath } = services.settings().options
      if (cached.text === '' || cached.basePath !== basePath)
        Object.assign(cached, { basePath, text: JSON.stringify(openApiDocument(routes(), basePath)) })
      return pieces(cached.text)
    },
  })
}

// oxlint-disable-next-line typescript/require-await
async function* pieces(text: string): AsyncGenerator<string, void, undefined> {
  yield text
}

/** An endpoint as an OpenAPI operation. */
function operationOf(endpoint: Endpoint): JsonSchema {
  const { method, path, summary, area } = endpoint
  const content = contentOf(endpoint)
  return {
    operationId: `${method.toLowerCase()}${path.replaceAll(/\W/g, '_')}`,
    summary,
    tags: [area],
    security: securityOf(endpoint),
    parameters: parametersOf(endpoint),
    ...(content && { requestBody: { required: true, content } }),
    responses: {
      ...successes(endpoint),
      ...Object.fromEntries(errorStatuses(endpoint).map((status) => [status, errorOf(endpoint, status)])),
    },
  }
}

function successes(endpoint: Endpoint): JsonSchema {
  if (endpoint.kind === 'json' && endpoint.succeeds === false) return {}
  const status = endpoint.kind === 'json' ? (endpoint.redirects ? 302 : 200) : (endpoint.status ?? 200)
  if (status >= 300) return { [status]: { description: 'Elsewhere: see `location`' } }
  const headers = responseHeaders(endpoint)
  const accepted = isCallEndpoint(endpoint) && endpoint.acceptsNotifications === true
  return {
    [status]: { description: 'Success', ...(headers && { headers }), content: successOf(endpoint) },
    ...(accepted && { 202: { description: 'Accepted: a notification, which has no answer' } }),
  }
}

/** The path with its parameters in braces. */
function templateOf({ path }: Endpoint): string {
  return path.replaceAll(/(?<=\/):(\w+)\*?/g, '{$1}')
}

function parametersOf(endpoint: Endpoint): JsonSchema[] {
  const { params, query } = endpoint.kind === 'json' ? endpoint : {}
  const inPath = params ? fieldsOf(params).properties : {}
  const ofCalls = endpoint.kind === 'raw' ? endpoint.queryFields : undefined
  const inQuery = query ? fieldsOf(query) : { properties: ofCalls ?? {}, required: [] }
  return [
    ...parameterNames(endpoint.path).map((name) => ({
      name,
      in: 'path',
      required: true,
      schema: inPath[name] ?? { type: 'string' },
    })),
    ...Object.entries(inQuery.properties).map(([name, schema]) => ({
      name,
      in: 'query',
      required: inQuery.required.includes(name),
      schema,
    })),
    ...headerParameters(endpoint),
  ]
}

function fieldsOf(schema: z.ZodType): { properties: Record<string, JsonSchema>; required: string[] } {
  const { properties = {}, required = [] } = jsonSchema(schema, 'input')
  return { properties: properties as Record<string, JsonSchema>, required: required as string[] }
}

/** The media types and schemas of the request body; undefined if the endpoint accepts none. */
function contentOf(endpoint: Endpoint): JsonSchema | undefined {
  const body = bodyOf(endpoint)
  const form = isCallEndpoint(endpoint) ? endpoint.formSchema?.() : undefined
  const isUpload = endpoint.kind === 'json' && endpoint.upload !== undefined
  if (!body && !form && !isUpload) return undefined
  return {
    ...(isUpload && { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } }),
    ...(body && { 'application/json': { schema: body } }),
    ...(form && { 'multipart/form-data': { schema: form } }),
  }
}

function bodyOf(endpoint: Endpoint): JsonSchema | undefined {
  if (endpoint.kind === 'json') return endpoint.body && jsonSchema(endpoint.body, 'input')
  return isCallEndpoint(endpoint) ? endpoint.requestSchema?.() : undefined
}

function successOf(endpoint: Endpoint): JsonSchema {
  if (endpoint.kind === 'raw') {
    return Object.fromEntries(
      (endpoint.contentTypes ?? ['application/json']).map((type) => [type, { schema: {} }]),
    )
  }
  const text = endpoint.text && { [endpoint.text.type]: { schema: { type: textType(endpoint.text) } } }
  if (text && !endpoint.responseBody) return text
  return { 'application/json': { schema: schemaOf(endpoint) }, ...text }
}

/** The JSON type of a text: one of another format than JSON is a string. */
function textType({ type }: TextFormat): 'object' | 'string' {
  return type === 'application/json' ? 'object' : 'string'
}

function schemaOf(endpoint: JsonEndpoint): JsonSchema {
  const value = returnedSchema(endpoint)
  if (endpoint.envelope === 'own') return value ?? {}
  const mayLack = endpoint.responseBody?.safeParse(undefined).success
  return successSchema(endpoint.area, value, mayLack)
}

function returnedSchema({ responseBody }: JsonEndpoint): JsonSchema | undefined {
  return responseBody && jsonSchema(responseBody, 'output')
}

function errorOf(endpoint: Endpoint, status: number): JsonSchema {
  const refs = areasOf(endpoint).map((area) => ({ $ref: `#/components/schemas/error-${area}` }))
  const schema = refs.length > 1 ? { anyOf: refs } : refs[0]
  const isText = endpoint.kind === 'raw' && endpoint.textErrorStatuses?.includes(status)
  const text = isText && { 'text/plain': { schema: { type: 'string' } } }
  return { description: errorDescription(status), content: { 'application/json': { schema }, ...text } }
}

/** JSON Schema of a zod schema; `input` describes the value before defaults and transforms. */
function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override({ jsonSchema: made }) {
      // Responses may gain fields in later versions.
      if (io === 'output' && made.additionalProperties === false) delete made.additionalProperties
    },
  })
  return rest
}

/** Error statuses that upstreams send and the gateway passes on, but never creates itself. */
const UPSTREAM_STATUSES = [404, 409, 422, 529]

/** The statuses of an endpoint's errors, in ascending order. */
function errorStatuses(endpoint: Endpoint): number[] {
  const { access, kind, errorStatuses: own = [], path } = endpoint
  if (own === 'never') return []
  const statuses = new Set([500, 503, ...own])
  const add = (...more: number[]): void => more.forEach((status) => statuses.add(status))
  if (access === 'operator') add(403)
  else if (access !== 'anyone' && access !== 'visitor') add(401, 403)
  if (access === 'keyed-account') add(400, 404)
  if (kind === 'raw') {
    if (isCallEndpoint(endpoint) || isGloballyLimited(path)) add(429)
    if (isCallEndpoint(endpoint) && (endpoint.requestSchema ?? endpoint.formSchema))
      add(400, 408, 413, 415, ...upstreamStatuses(endpoint))
  } else {
    if (isGloballyLimited(path) || endpoint.limit || endpoint.isLimitedDaily) add(429)
    if (endpoint.params) add(400, 404)
    if (endpoint.body ?? endpoint.upload) add(400, 408, 413, 415)
  }
  return [...statuses].sort((one, other) => one - other)
}

function upstreamStatuses({ hiddenStatuses = [] }: CallEndpoint): number[] {
  return UPSTREAM_STATUSES.filter((status) => !hiddenStatuses.includes(status))
}

/** Names the gateway's own error codes that have this status. */
function errorDescription(status: number): string {
  const codes = Object.entries(ERRORS).filter(([, kind]) => kind.status === status)
  return codes.length > 0 ? codes.map(([code]) => code).join(', ') : 'passed on from the upstream'
}

/** The schema of an area's errors, derived from rendered examples, one with a code and one without, and those passed on. */
function errorSchema(area: ApiArea): JsonSchema {
  const shapes = EXAMPLES.map((code) => {
    const { body } = renderError(area, new GatewayError(code, 'what is wrong'), 'an-id')
    return JSON.parse(body.toString()) as unknown
  })
  return shapeOf([...shapes, ...(PASSED_ON[area] ?? [])], new Map())
}

const EXAMPLES: readonly ErrorCode[] = ['overloaded', 'invalid_request']

const GEMINI_ERROR = { error: { code: 400, message: 'what is wrong', status: 'INVALID_ARGUMENT' } }

/** Errors that the gateway does not render, which lack members: those of Gemini itself, and of JSON-RPC. */
const PASSED_ON: { readonly [In in ApiArea]?: readonly unknown[] } = {
  gemini: [GEMINI_ERROR],
  'gemini-array': [[GEMINI_ERROR]],
  mcp: [{ jsonrpc: '2.0', error: { code: -32600, message: 'what is wrong' } }],
}

/**
 * The schema of an area's successful responses, around the schema of the returned value. With `mayLack` the
 * value may be missing.
 */
function successSchema(area: ApiArea, value: JsonSchema | undefined, mayLack = false): JsonSchema {
  if (!hasEnvelope(area)) return value ?? {}
  const placeholder = 'the returned value'
  const returned = mayLack ? [placeholder, undefined] : [value && placeholder]
  const bodies = returned.map((one): unknown => JSON.parse(JSON.stringify(inEnvelope(area, one))))
  return shapeOf(bodies, new Map(value ? [[placeholder, value]] : []))
}

/**
 * A schema that fits all examples. If a text in an example is a key of `known`, the schema stored under that
 * key takes its place.
 */
function shapeOf(examples: readonly unknown[], known: ReadonlyMap<string, JsonSchema>): JsonSchema {
  const [example] = examples
  if (typeof example === 'string') return known.get(example) ?? { type: 'string' }
  if (typeof example === 'boolean') return { const: example }
  if (typeof example === 'number') return { type: 'integer' }
  if (Array.isArray(example)) return { type: 'array', items: shapeOf(examples.flat(), known) }
  const objects = examples.map(asRecord).filter((one) => one !== undefined)
  const names = [...new Set(objects.flatMap((one) => Object.keys(one)))]
  const properties = names.map((name) => [
    name,
    shapeOf(
      objects.filter((one) => name in one).map((one) => one[name]),
      known,
    ),
  ])
  return {
    type: 'object',
    required: names.filter((name) => objects.every((one) => name in one)),
    properties: Object.fromEntries(properties),
  }
}

/** The ways to authenticate; `docs/api.md: Authentication`. */
const SECURITY_SCHEMES = {
  accessToken: {
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
    description: "An account's access token, alone or after Bearer",
  },
  gatewayUser: { type: 'apiKey', in: 'header', name: 'Gateway-User', description: "The account's user id" },
  gatewayKey: {
    type: 'apiKey',
    in: 'header',
    name: 'Gateway-Key',
    description: "The id of a key of the account's own",
  },
  session: { type: 'apiKey', in: 'cookie', name: 'session', description: 'Of the console' },
  bearerKey: { type: 'http', scheme: 'bearer', description: 'An API key: sk-…' },
  xApiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'An API key: sk-…' },
  alternateKey: { type: 'apiKey', in: 'header', name: 'x-alt-api-key', description: 'An API key: sk-…' },
  googleKey: { type: 'apiKey', in: 'header', name: 'x-goog-api-key', description: 'An API key: sk-…' },
  keyInQuery: { type: 'apiKey', in: 'query', name: 'key', description: 'An API key: sk-…' },
  metricsToken: { type: 'http', scheme: 'bearer', description: 'options.metrics_token' },
} as const

type Requirement = { readonly [Scheme in keyof typeof SECURITY_SCHEMES]?: readonly [] }

const ACCOUNT: readonly Requirement[] = [{ accessToken: [], gatewayUser: [] }, { session: [] }]
const KEYED_ACCOUNT = ACCOUNT.map((requirement) => ({ ...requirement, gatewayKey: [] as const }))
const BEARER: Requirement = { bearerKey: [] }
const ALTERNATE: readonly Requirement[] = [{ alternateKey: [] }, { googleKey: [] }, { keyInQuery: [] }]

/** Security requirements by the places in which an endpoint accepts an API key. */
const KEYS: Readonly<Record<KeyLocations, readonly Requirement[]>> = {
  bearer: [BEARER],
  'x-api-key': [{ xApiKey: [] }, BEARER],
  'model-list': [{ xApiKey: [] }, { googleKey: [] }, BEARER],
  alternate: [...ALTERNATE, BEARER],
  any: [{ xApiKey: [] }, ...ALTERNATE, BEARER],
}

/** Security requirements by kind of access; a kind that is not listed needs an API key. */
const ACCESS: Readonly<Record<string, readonly Requirement[]>> = {
  anyone: [],
  visitor: [],
  account: ACCOUNT,
  admin: ACCOUNT,
  root: ACCOUNT,
  'keyed-account': KEYED_ACCOUNT,
  // No credentials are needed on the gateway's own machine.
  operator: [{}, { metricsToken: [] }],
}

/** The security requirements of an endpoint; meeting one of them is enough. */
function securityOf(endpoint: Endpoint): readonly Requirement[] {
  const known = ACCESS[endpoint.access]
  if (known) return known
  const keyIn = 'keyIn' in endpoint ? endpoint.keyIn : undefined
  return KEYS[keyIn ?? 'bearer']
}
