import { describe, expect, test } from 'vitest'
import { GatewayError } from '../errors.ts'
import { type ApiArea, renderError } from './envelopes.ts'

function told(
  area: ApiArea,
  error: unknown,
): { status: number; body: { readonly error?: { readonly type: string } } } {
  const { status, body } = renderError(area, error, 'r1')
  return { status, body: JSON.parse(body.toString()) }
}

describe('an error where balances are read', () => {
  test.each([
    ['billing-subscription', 'upstream_error'],
    ['billing-usage', 'gateway_error'],
    ['usage', 'gateway_error'],
  ] as const)(
    'an unexpected error at an address for balances is a 500 with the error type of this address: %s',
    (area, type) => {
      const { status, body } = told(area, new TypeError('a secret'))
      expect(status).toBe(500)
      expect(body.error).toEqual({
        type,
        code: 'internal_error',
        message: 'internal error (request id: r1)',
      })
    },
  )

  test.each(['billing-subscription', 'billing-usage', 'usage'] as const)(
    'a rate limit error at an address for balances has the type gateway_error: %s',
    (area) => {
      const { status, body } = told(area, new GatewayError('rate_limited', 'too many', { retryAfter: 3 }))
      expect(status).toBe(429)
      expect(body.error?.type).toBe('gateway_error')
    },
  )

  test("an error at the address for a key's usage has the fields of this address and those of the model API", () => {
    const { body } = told('usage', new GatewayError('token_disabled', 'no'))
    const message = 'no (request id: r1)'
    expect(body).toEqual({
      code: false,
      message,
      data: {},
      error: { type: 'authentication_error', code: 'token_disabled', message },
    })
  })
})

test.each([
  ['unknown_model', 404, 'invalid_request_error'],
  ['model_not_found', 503, 'gateway_error'],
] as const)(
  'an error about a missing model has the code model_not_found and its own status: %s',
  (code, status, type) => {
    const error = new GatewayError(code, 'no')
    expect(told('relay', error)).toMatchObject({ status, body: { error: { type, code: 'model_not_found' } } })
    expect(told('messages', error)).toEqual({
      status,
      body: {
        type: 'error',
        error: { type: 'gateway_error', code: 'model_not_found', message: 'no (request id: r1)' },
        request_id: 'r1',
      },
    })
  },
)
