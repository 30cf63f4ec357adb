import type { ErrorParts } from '../upstream-error.ts'

/** Codes that clients know in a response, by what an error's code or type is elsewhere. */
const CODES: ReadonlyMap<string, string> = new Map([
  ['rate_limited', 'rate_limit_exceeded'],
  ['rate_limit_error', 'rate_limit_exceeded'],
  ['rate_limit_exceeded', 'rate_limit_exceeded'],
  ['insufficient_quota', 'insufficient_quota'],
  ['budget_exceeded', 'budget_exceeded'],
  ['storage_unavailable', 'storage_unavailable'],
  ['context_length_exceeded', 'context_length_exceeded'],
  ['invalid_prompt', 'invalid_prompt'],
  ['invalid_request_error', 'invalid_prompt'],
  ['usage_not_included', 'usage_not_included'],
  ['cyber_policy', 'cyber_policy'],
  ['slow_down', 'slow_down'],
  ['server_is_overloaded', 'server_is_overloaded'],
  ['overloaded', 'server_is_overloaded'],
  ['overloaded_error', 'server_is_overloaded'],
  ['UNAVAILABLE', 'server_is_overloaded'],
])

/**
 * The error in a response that failed: clients go by its code, and try again where they do not know it. A
 * code that they know goes before the upstream's own.
 */
export function responseError({ type, code, hasOwnCode, message }: ErrorParts): {
  readonly code: string
  readonly message: string
} {
  return { code: CODES.get(code) ?? CODES.get(type) ?? (hasOwnCode ? code : 'server_error'), message }
}
