import { ERRORS, type ErrorCode, GatewayError } from '../../errors.ts'
import type { JsonSchema } from '@sluice/wire/field-check'
import { asRecord } from '@sluice/wire/json/record'
import { type Endpoint, isCall, type KeyEndpoint } from '../endpoint.ts'
import { type Area, hasEnvelope, inEnvelope, renderError } from '../envelopes.ts'
import { isGloballyLimited } from '../global-limit.ts'

/** Statuses of upstream errors that are passed on and that errors of the gateway do not have. */
const UPSTREAM_STATUSES = [404, 409, 422, 529]

/** The statuses of an endpoint's errors, in ascending order. */
export function errorStatuses(endpoint: Endpoint): number[] {
  const { access, kind, errorStatuses: own = [], path } = endpoint
  if (own === 'never') return []
  const statuses = new Set([500, 503, ...own])
  const add = (...more: number[]): void => more.forEach((status) => statuses.add(status))
  if (access === 'operator') add(403)
  else if (access !== 'anyone' && access !== 'visitor') add(401, 403)
  if (access === 'keyed-account') add(400, 404)
  if (kind === 'raw') {
    if (isCall(endpoint) || isGloballyLimited(path)) add(429)
    if (isCall(endpoint) && (endpoint.requestSchema ?? endpoint.formSchema))
      add(400, 408, 413, 415, ...upstreamStatuses(endpoint))
  } else {
    if (isGloballyLimited(path) || endpoint.limit) add(429)
    if (endpoint.params) add(400, 404)
    if (endpoint.body) add(400, 408, 413, 415)
  }
  return [...statuses].sort((one, other) => one - other)
}

function upstreamStatuses({ hiddenStatuses = [] }: KeyEndpoint): number[] {
  return UPSTREAM_STATUSES.filter((status) => !hiddenStatuses.includes(status))
}

/** Lists the codes of the gateway's own errors with a status. */
export function errorDescription(status: number): string {
  const codes = Object.entries(ERRORS).filter(([, kind]) => kind.status === status)
  return codes.length > 0 ? codes.map(([code]) => code).join(', ') : 'passed on from the upstream'
}

/** The schema of an area's errors, derived from two rendered examples: one with a code and one without. */
export function errorSchema(area: Area): JsonSchema {
  const shapes = EXAMPLES.map((code) => {
    const { body } = renderError(area, new GatewayError(code, 'what is wrong'), 'an-id')
    return JSON.parse(body.toString()) as unknown
  })
  return shapeOf(shapes, new Map())
}

const EXAMPLES: readonly ErrorCode[] = ['overloaded', 'invalid_request']

/**
 * The schema of an area's successes, around the schema of the returned value. With `mayLack` the value may be
 * missing.
 */
export function successSchema(area: Area, value: JsonSchema | undefined, mayLack = false): JsonSchema {
  if (!hasEnvelope(area)) return value ?? {}
  const placeholder = 'the returned value'
  const returned = mayLack ? [placeholder, undefined] : [value && placeholder]
  const bodies = returned.map((one): unknown => JSON.parse(JSON.stringify(inEnvelope(area, one))))
  return shapeOf(bodies, new Map(value ? [[placeholder, value]] : []))
}

/** A schema that fits all examples. Texts that are keys of `known` are replaced by the schema there. */
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
