import { type AnswerError, errorInAnswer, errorOfEnd } from '../answer-error.ts'
import { asRecord } from '../json/record.ts'
import type { ErrorContent } from '../upstream-error.ts'

/**
 * Error codes that clients of this protocol know, by the error codes or types of other protocols that mean
 * the same.
 */
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
 * The error object of a failed response. If clients know a code with the same meaning, it replaces the
 * upstream's own code, because clients retry after codes that they do not know.
 */
export function responseError({ type, code, hasOwnCode, message }: ErrorContent): {
  readonly code: string
  readonly message: string
} {
  return { code: CODES.get(code) ?? CODES.get(type) ?? (hasOwnCode ? code : 'server_error'), message }
}

/** The error that a complete response is or contains; undefined if there is none. */
export function errorOfResponse(
  response: Readonly<Record<string, unknown>> | undefined,
): AnswerError | undefined {
  return (
    errorInAnswer(response, Array.isArray(response?.['output'])) ??
    errorOfEnd(asRecord(response?.['incomplete_details'])?.['reason'])
  )
}
