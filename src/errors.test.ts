import { WireError } from '@sluice/wire/wire-error'
import { describe, expect, test } from 'vitest'
import { asGatewayError, GatewayError } from './errors.ts'

describe('the error for a client', () => {
  test('an error of a codec becomes one of the gateway, with its code and its message', () => {
    const cause = new WireError('model_not_specified', 'The model name is not specified.')
    const error = asGatewayError(cause)
    expect(error).toBeInstanceOf(GatewayError)
    expect(error).toMatchObject({ code: 'model_not_specified', message: cause.message, cause })
    expect(error?.kind).toMatchObject({ status: 400, type: 'gateway_error' })
  })

  test('an error of the gateway stays as it is, and other errors have no code for clients', () => {
    const error = new GatewayError('overloaded', 'busy', { retryAfter: 3 })
    expect(asGatewayError(error)).toBe(error)
    expect(asGatewayError(new TypeError('x is undefined'))).toBeUndefined()
  })
})
