import type { JsonSchema } from '@sluice/wire/field-check'
import { type Endpoint, isCall } from './endpoint.ts'

/** Request headers of calls, for the description of the API. */
const REQUEST = {
  /** `docs/api.md: Idempotency keys`. */
  'Idempotency-Key': {
    description: 'A repeated call with the same key and body gets the first answer, and costs once.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  },
} as const

/** Those of calls whose answers may be kept. `docs/answer-cache.md: By request`. */
const CACHED_REQUEST = {
  'Cache-Control': {
    description: 'With options.cache: max-age=N, no-cache or no-store.',
    schema: { type: 'string', maxLength: 1024 },
  },
} as const

/** Headers of their responses. */
const RESPONSE = {
  'idempotency-replayed': {
    description: 'The answer is that of an earlier call with the same idempotency key.',
    schema: { const: 'true' },
  },
} as const

/** `docs/answer-cache.md: Options`. */
const CACHED_RESPONSE = {
  'x-gateway-cache': {
    description: 'With options.cache: whether the answer is that of another call.',
    schema: { enum: ['hit', 'miss', 'bypass'] },
  },
  age: { description: 'Seconds since a hit was made.', schema: { type: 'integer', minimum: 0 } },
} as const

/** The header parameters of an endpoint. */
export function headerParameters(endpoint: Endpoint): JsonSchema[] {
  if (!isRepeatable(endpoint)) return []
  const headers = { ...REQUEST, ...(hasAnswer(endpoint) && CACHED_REQUEST) }
  return Object.entries(headers).map(([name, header]) => ({ name, in: 'header', required: false, ...header }))
}

/** The headers of an endpoint's successes; undefined if none are described. */
export function responseHeaders(endpoint: Endpoint): JsonSchema | undefined {
  if (!isRepeatable(endpoint)) return undefined
  return { ...RESPONSE, ...(hasAnswer(endpoint) && CACHED_RESPONSE) }
}

function isRepeatable(endpoint: Endpoint): boolean {
  return isCall(endpoint) && endpoint.method === 'POST'
}

function hasAnswer(endpoint: Endpoint): boolean {
  return isCall(endpoint) && (endpoint.requestSchema ?? endpoint.formSchema) !== undefined
}
