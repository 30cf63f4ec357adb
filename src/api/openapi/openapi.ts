import { z } from 'zod'
import type { JsonSchema } from '@sluice/wire/field-check'
import { defineEndpoint, type Endpoint, isCall, type JsonEndpoint } from '../endpoint.ts'
import { parameterNames } from '../routing/path-pattern.ts'
import { errorDescription, errorSchema, errorStatuses, successSchema } from './openapi-errors.ts'
import { SECURITY_SCHEMES, securityOf } from './openapi-security.ts'

const DESCRIPTION =
  'A gateway in front of language models. A request whose head cannot be read, or takes too long, reaches none of ' +
  'these operations: it gets 400, 408, 417 or 431. A method that a path does not take gets 405.'

/** Describes all routes as OpenAPI 3.1, based on the schemas that check requests and responses. */
export function openApiDocument(routes: readonly Endpoint[]): object {
  const paths = new Map<string, Record<string, unknown>>()
  for (const route of routes) {
    const path = templateOf(route)
    paths.set(path, { ...paths.get(path), [route.method.toLowerCase()]: operationOf(route) })
  }
  const areas = [...new Set(routes.map(({ area }) => area))]
  return {
    openapi: '3.1.0',
    info: { title: 'Sluice', version: '1', description: DESCRIPTION },
    servers: [{ url: '/' }],
    tags: areas.map((name) => ({ name })),
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: SECURITY_SCHEMES,
      schemas: Object.fromEntries(areas.map((area) => [`error-${area}`, errorSchema(area)])),
    },
  }
}

/** `docs/api.md: Description`. The document is built at the first request and then cached. */
export function openApi(routes: () => readonly Endpoint[]): JsonEndpoint {
  let cached: string | undefined
  return defineEndpoint({
    method: 'GET',
    path: '/openapi.json',
    area: 'relay',
    access: 'visitor',
    summary: 'This description',
    text: { type: 'application/json' },
    // oxlint-disable-next-line typescript/require-await
    handle: async () => pieces((cached ??= JSON.stringify(openApiDocument(routes())))),
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
  return { [status]: { description: 'Success', content: successOf(endpoint) } }
}

/** The path with its parameters in braces. */
function templateOf({ path }: Endpoint): string {
  return path.replaceAll(/(?<=\/):(\w+)\*?/g, '{$1}')
}

function parametersOf(endpoint: Endpoint): JsonSchema[] {
  const { params, query } = endpoint.kind === 'json' ? endpoint : {}
  const inPath = params ? fieldsOf(params).properties : {}
  const inQuery = query ? fieldsOf(query) : { properties: {}, required: [] }
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
  ]
}

function fieldsOf(schema: z.ZodType): { properties: Record<string, JsonSchema>; required: string[] } {
  const { properties = {}, required = [] } = jsonSchema(schema, 'input')
  return { properties: properties as Record<string, JsonSchema>, required: required as string[] }
}

/** The body by content type; undefined if the endpoint takes none. */
function contentOf(endpoint: Endpoint): JsonSchema | undefined {
  const body = bodyOf(endpoint)
  const form = isCall(endpoint) ? endpoint.formSchema?.() : undefined
  if (!body && !form) return undefined
  return {
    ...(body && { 'application/json': { schema: body } }),
    ...(form && { 'multipart/form-data': { schema: form } }),
  }
}

function bodyOf(endpoint: Endpoint): JsonSchema | undefined {
  if (endpoint.kind === 'json') return endpoint.body && jsonSchema(endpoint.body, 'input')
  return isCall(endpoint) ? endpoint.requestSchema?.() : undefined
}

function successOf(endpoint: Endpoint): JsonSchema {
  if (endpoint.kind === 'raw') {
    return Object.fromEntries(
      (endpoint.contentTypes ?? ['application/json']).map((type) => [type, { schema: {} }]),
    )
  }
  const text = endpoint.text && { [endpoint.text.type]: { schema: { type: 'string' } } }
  if (text && !endpoint.responseBody) return text
  return { 'application/json': { schema: schemaOf(endpoint) }, ...text }
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
  const schema = { $ref: `#/components/schemas/error-${endpoint.area}` }
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
