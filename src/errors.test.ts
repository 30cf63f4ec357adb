import { WireError } from '@sluice/wire/wire-error'
import { describe, expect, test } from 'vitest'
import { asGatewayError, GatewayError } from './errors.ts'

describe('the error for a client', () => {
  test('an error of a protocol codec is converted to a gateway error with the same code and message', () => {
    const cause = new WireError('model_not_specified', 'The model name is not specified.')
    const error = asGatewayError(cause)
    expect(error).toBeInstanceOf(GatewayError)
    expect(error).toMatchObject({ code: 'model_not_specified', message: cause.message, cause })
    expect(error?.kind).toMatchObject({ status: 400, type: 'gateway_error' })
  })

  test('a gateway error is reported to clients unchanged, and an unexpected error is not converted to one', () => {
    const error = new GatewayError('overloaded', 'busy', { retryAfter: 3 })
    expect(asGatewayError(error)).toBe(error)
    expect(asGatewayError(new TypeError('x is undefined'))).toBeUndefined()
  })
})
