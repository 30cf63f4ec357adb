import type { ErrorContent } from '../upstream-error.ts'

/** Error codes that clients of this protocol know, by an error code or type of other protocols. */
const CODES: ReadonlyMap<string, string> = new Map([
  ['rate_limited', 'rate_limit_exceeded'],
  ['rate_limit_error', 'rate_limit_exceeded'],
  ['rate_limit_exceeded', 'rate_limit_exceeded'],
  ['insufficient_quota', 'insufficient_quota'],
  ['budget_exceeded', 'budget_exceeded'],
  ['quota_held', 'quota_held'],
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
 * The error object of a failed response. A code that clients know is preferred to the upstream's own code,
 * because clients retry if they do not know a code.
 */
export function responseError({ type, code, hasOwnCode, message }: ErrorContent): {
  readonly code: string
  readonly message: string
} {
  return { code: CODES.get(code) ?? CODES.get(type) ?? (hasOwnCode ? code : 'server_error'), message }
}
