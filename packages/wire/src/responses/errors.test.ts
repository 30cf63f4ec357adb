import { expect, test } from 'vitest'
import { responseError } from './errors.ts'

test.each([
  ['api_error', 'upstream_error', 'server_error'],
  ['rate_limit_error', 'rate_limited', 'rate_limit_exceeded'],
  ['permission_error', 'insufficient_quota', 'insufficient_quota'],
  ['rate_limit_error', 'quota_held', 'quota_held'],
  ['invalid_request_error', 'context_length_exceeded', 'context_length_exceeded'],
  ['invalid_request_error', 'something', 'invalid_prompt'],
  ['overloaded_error', '', 'server_is_overloaded'],
  ['invalid_request_error', 'cyber_policy', 'cyber_policy'],
  ['rate_limit_error', 'slow_down', 'slow_down'],
])('an error of type %s and code %s fails a response with %s', (type, code, expected) => {
  expect(responseError({ type, code, message: 'm' })).toEqual({ code: expected, message: 'm' })
})
