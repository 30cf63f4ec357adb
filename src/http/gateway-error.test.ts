import { expect, test } from 'vitest'
import { gatewayErrorOf } from './gateway-error.ts'

test.each([
  [400, 'invalid_request'],
  [408, 'request_timeout'],
  [417, 'expectation_failed'],
  [429, 'rate_limited'],
  [431, 'headers_too_large'],
  [501, 'not_implemented'],
] as const)('a request that the server refuses with %i is %s', (status, code) => {
  const error = gatewayErrorOf({ status, message: 'a reason', retryAfter: 1 })
  expect(error).toMatchObject({ code, message: 'a reason', retryAfter: 1, kind: { status } })
  expect(gatewayErrorOf({ status, message: 'a reason' }).retryAfter).toBeUndefined()
})
