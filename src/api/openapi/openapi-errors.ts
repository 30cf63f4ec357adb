import { ERRORS, type ErrorCode, GatewayError } from '../../errors.ts'
import type { JsonSchema } from '../../protocols/accepting.ts'
import { asRecord } from '../../protocols/json/record.ts'
import type { Endpoint, KeyEndpoint } from '../endpoint.ts'
import { type Area, hasEnvelope, renderSuccess, renderError } from '../envelopes.ts'
import { isGloballyLimited } from '../global-limit.ts'

/** What an upstream's refusal of a call may come as, beside what the gateway's own errors do. */
const UPSTREAM_STATUSES = [404, 409, 422, 529]

/** The statuses that an endpoint's errors may have, in order. */
export function errorStatuses(endpoint: Endpoint): number[] {
  const { access, kind: door, errorStatuses: fails = [], path } = endpoint
  if (fails === 'never') return []
  const statuses = new Set([500, 503, ...fails])
  const add = (...more: number[]): void => more.forEach((status) => statuses.add(status))
  if (access === 'operator') add(403)
  else if (access !== 'anyone' && access !== 'visitor') add(401, 403)
  if (door === 'raw') {
    if (access === 'api-key' || isGloballyLimited(path)) add(429)
    if (access === 'api-key' && endpoint.requestSchema) add(400, 408, 413, 415, ...upstreamStatuses(endpoint))
  } else {
    if (isGloballyLimited(path) || endpoint.limit) add(429)
    if (endpoint.params) add(400, 404)
    if (endpoint.body) add(400, 408, 413, 415)
  }
  return [...statuses].sort((one, other) => one - other)
}

function upstreamStatuses({ hiddenStatuses: withholds = [] }: KeyEndpoint): number[] {
  return UPSTREAM_STATUSES.filter((status) => !withholds.includes(status))
}

/** Which errors of the gateway's own a status is for. */
export function errorDescription(status: number): string {
  const codes = Object.entries(ERRORS).filter(([, kind]) => kind.status === status)
  return codes.length > 0 ? codes.map(([code]) => code).join(', ') : 'passed on from the upstream'
}

/**
 * The shape of an area's errors, as they are rendered: some carry a code everywhere, and the others where all
 * do.
 */
export function errorSchema(area: Area): JsonSchema {
  const shapes = EXAMPLES.map((code) => {
    const { body } = renderError(area, new GatewayError(code, 'what is wrong'), 'an-id')
    return JSON.parse(body.toString()) as unknown
  })
  return shapeOf(shapes, new Map())
}

const EXAMPLES: readonly ErrorCode[] = ['overloaded', 'invalid_request']

/** The shape of an area's answers around this one. */
export function answerSchema(area: Area, answer: JsonSchema | undefined): JsonSchema {
  if (!hasEnvelope(area)) return answer ?? {}
  const place = 'the place of the answer'
  const body = renderSuccess(area, answer && place)
  return shapeOf([JSON.parse(body.toString())], new Map(answer ? [[place, answer]] : []))
}

/** The schema of some examples alike; a text that `known` has is of the schema there. */
function shapeOf(examples: readonly unknown[], known: ReadonlyMap<string, JsonSchema>): JsonSchema {
  const [example] = examples
  if (typeof example === 'string') return known.get(example) ?? { type: 'string' }
  if (typeof example === 'boolean') return { const: example }
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
