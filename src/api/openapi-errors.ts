import { ERRORS, type ErrorCode, GatewayError } from '../errors.ts'
import type { JsonSchema } from '../protocols/accepting.ts'
import type { Endpoint } from './endpoint.ts'
import { type Area, renderAnswer, renderError } from './envelopes.ts'

/** What an upstream's refusal of a call may come as, beside what the gateway's own errors do. */
const PASSED_ON = [404, 409, 422, 529]

/** The statuses that an endpoint's errors may have, in order. */
export function errorStatuses(endpoint: Endpoint): number[] {
  const statuses = new Set([500, 503])
  const add = (...more: number[]): void => more.forEach((status) => statuses.add(status))
  const { access, door, path } = endpoint
  if (access === 'operator') add(403)
  else if (access !== 'anyone' && access !== 'visitor') add(401, 403)
  if (door === 'raw') {
    if (access === 'api-key') add(429)
    if (access === 'api-key' && endpoint.takes) add(400, 408, 413, 415, ...PASSED_ON)
  } else {
    if (/^\/(?:api|v1\/dashboard)\//.test(path) || endpoint.limit) add(429)
    if (endpoint.params ?? endpoint.query) add(400)
    if (endpoint.params) add(404)
    if (endpoint.body) add(400, 408, 413, 415)
  }
  return [...statuses].sort((one, other) => one - other)
}

/** Which errors of the gateway's own a status is for. */
export function errorDescription(status: number): string {
  const codes = Object.entries(ERRORS).filter(([, kind]) => kind.status === status)
  return codes.length > 0 ? codes.map(([code]) => code).join(', ') : 'passed on from the upstream'
}

/** The shape of an area's errors, as they are rendered. */
export function errorSchema(area: Area): JsonSchema {
  const code: ErrorCode = 'overloaded'
  const { body } = renderError(area, new GatewayError(code, 'what is wrong'), 'an-id')
  return shapeOf(JSON.parse(body.toString()), new Map())
}

/** The shape of an area's answers around this one. */
export function answerSchema(area: Area, answer: JsonSchema | undefined): JsonSchema {
  const place = 'the place of the answer'
  const body = renderAnswer(area, answer && place)
  return shapeOf(JSON.parse(body.toString()), new Map(answer ? [[place, answer]] : []))
}

/** The schema of an example; a text that `known` has is of the schema there. */
function shapeOf(example: unknown, known: ReadonlyMap<string, JsonSchema>): JsonSchema {
  if (typeof example === 'string') return known.get(example) ?? { type: 'string' }
  if (typeof example === 'boolean') return { const: example }
  if (typeof example !== 'object' || example === null) return {}
  const fields = Object.entries(example)
  return {
    type: 'object',
    required: fields.map(([name]) => name),
    properties: Object.fromEntries(fields.map(([name, value]) => [name, shapeOf(value, known)])),
  }
}
