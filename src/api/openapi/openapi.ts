import { defineEndpoint, type Endpoint, type JsonEndpoint } from '../endpoint.ts'
import { errorSchema } from './openapi-errors.ts'
import { operationOf, templateOf } from './openapi-operation.ts'
import { SECURITY_SCHEMES } from './openapi-security.ts'

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
