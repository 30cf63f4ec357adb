import type { Endpoint } from '../../src/api/endpoint.ts'
import { JSON_ROUTES } from '../../src/api/json-routes.ts'
import { RAW_ROUTES } from '../../src/api/raw-routes.ts'

/** Every endpoint of the gateway. */
export const ROUTES: readonly Endpoint[] = [...RAW_ROUTES, ...JSON_ROUTES]

/** Whether the response of an endpoint continues until the client leaves. */
export function isEndless(endpoint: Endpoint): boolean {
  return endpoint.kind === 'json' && endpoint.text?.isEndless === true
}

/**
 * The parameters of a path: a name after a slash; `:generateContent` is a method of the Gemini API, not a
 * parameter.
 */
const PARAMETER = /(?<=\/):(\w+)\*?/g

/** The path of an endpoint with a value for each parameter. */
export function filledPath({ path }: Pick<Endpoint, 'path'>, value: string): string {
  return path.replaceAll(PARAMETER, () => value)
}

/** The path of an endpoint as OpenAPI writes it. */
export function describedPath({ path }: Pick<Endpoint, 'path'>): string {
  return path.replaceAll(PARAMETER, '{$1}')
}
