import type { JsonSchema } from '@sluice/wire/field-check'
import { type Endpoint, isCallEndpoint } from './endpoint.ts'

/** Request headers that the API description lists for POST calls that can be repeated. */
const REQUEST_HEADERS = {
  /** Header that prevents a repeated request from being charged twice: `docs/api.md: Idempotency keys`. */
  'Idempotency-Key': {
    description: 'A repeated call with the same key and body gets the first answer, and costs once.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  },
} as const

/**
 * Request headers that the API description lists in addition for calls whose answers can be cached.
 * `docs/answer-cache.md: By request`.
 */
const CACHEABLE_REQUEST_HEADERS = {
  'Cache-Control': {
    description: 'With options.cache: max-age=N, no-cache or no-store.',
    schema: { type: 'string', maxLength: 1024 },
  },
} as const

/** Response headers that the API description lists for POST calls that can be repeated. */
const RESPONSE_HEADERS = {
  'idempotency-replayed': {
    description: 'The answer is that of an earlier call with the same idempotency key.',
    schema: { const: 'true' },
  },
} as const

/** Response headers for calls whose answers can be cached. `docs/answer-cache.md: Options`. */
const CACHEABLE_RESPONSE_HEADERS = {
  'x-gateway-cache': {
    description: 'With options.cache: whether the answer is that of another call.',
    schema: { enum: ['hit', 'miss', 'bypass'] },
  },
  age: { description: 'Seconds since a hit was made.', schema: { type: 'integer', minimum: 0 } },
} as const

/** Response headers for calls whose answers are never those of equal calls. */
const UNCACHED_RESPONSE_HEADERS = {
  'x-gateway-cache': {
    description: 'With options.cache: the answer, if a provider has made it, is that of this call.',
    schema: { const: 'bypass' },
  },
} as const

/** Names of the response headers that the API description lists. */
export const DESCRIBED_HEADER_NAMES = [
  ...Object.keys(RESPONSE_HEADERS),
  ...Object.keys(CACHEABLE_RESPONSE_HEADERS),
]

/** The request headers of an endpoint, as parameters in the OpenAPI description. */
export function headerParameters(endpoint: Endpoint): JsonSchema[] {
  if (!isRepeatable(endpoint)) return []
  const headers = { ...REQUEST_HEADERS, ...(isCacheable(endpoint) && CACHEABLE_REQUEST_HEADERS) }
  return Object.entries(headers).map(([name, header]) => ({ name, in: 'header', required: false, ...header }))
}

/**
 * The headers of an endpoint's successful responses, for the OpenAPI description; undefined if it describes
 * none.
 */
export function responseHeaders(endpoint: Endpoint): JsonSchema | undefined {
  if (!isRepeatable(endpoint)) return undefined
  return {
    ...RESPONSE_HEADERS,
    ...(isCacheable(endpoint) && CACHEABLE_RESPONSE_HEADERS),
    ...(isCallEndpoint(endpoint) && endpoint.repeats === 'past the cache' && UNCACHED_RESPONSE_HEADERS),
  }
}

/** Whether an endpoint reads `Idempotency-Key`. */
export function isRepeatable(endpoint: Endpoint): boolean {
  return isCallEndpoint(endpoint) && endpoint.method === 'POST' && endpoint.repeats !== 'never'
}

function isCacheable(endpoint: Endpoint): boolean {
  return isCallEndpoint(endpoint) && endpoint.repeats === undefined
}
