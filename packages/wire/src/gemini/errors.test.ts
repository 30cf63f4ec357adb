import { describe, expect, test } from 'vitest'
import { geminiErrorText, readGeminiError, statusOfStreamError } from './errors.ts'

describe('an error of the gateway', () => {
  test('an error of the gateway to a Gemini client has the status by number and name, its code as reason, and the request id', () => {
    const text = geminiErrorText({ status: 401, message: 'No.', code: 'invalid_api_key', requestId: 'r1' })
    expect(JSON.parse(text)).toEqual({
      error: {
        code: 401,
        message: 'No.',
        status: 'UNAUTHENTICATED',
        details: [
          {
            '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
            reason: 'invalid_api_key',
            domain: 'sluice',
            metadata: { request_id: 'r1' },
          },
        ],
      },
    })
  })

  test('an error of the gateway to a Gemini client states in its details when to retry', () => {
    const text = geminiErrorText({ status: 429, message: 'Slow down.', code: 'rate_limited', retryAfter: 7 })
    expect(readGeminiError(Buffer.from(text))).toMatchObject({
      status: 429,
      retryAfter: 7,
      type: 'RESOURCE_EXHAUSTED',
      code: 'rate_limited',
      message: 'Slow down.',
    })
  })

  test.each([
    [400, 'INVALID_ARGUMENT'],
    [403, 'PERMISSION_DENIED'],
    [404, 'NOT_FOUND'],
    [413, 'INVALID_ARGUMENT'],
    [429, 'RESOURCE_EXHAUSTED'],
    [500, 'INTERNAL'],
    [502, 'UNAVAILABLE'],
    [503, 'UNAVAILABLE'],
    [529, 'UNAVAILABLE'],
  ])(
    'an error of the gateway with the HTTP status %i is sent to Gemini clients with the status name %s',
    (status, name) => {
      expect(JSON.parse(geminiErrorText({ status, message: 'x', code: 'x' })).error.status).toBe(name)
    },
  )

  test.each([
    [{ type: 'rate_limit_error', code: 'x' }, 429],
    [{ type: 'api_error', code: 'overloaded' }, 503],
    [{ type: 'unheard_of', code: 'unheard_of' }, 500],
  ])(
    'an error inside a Gemini stream without a status gets the HTTP status that follows from its type and code: %j',
    (parts, status) => {
      expect(statusOfStreamError(parts)).toBe(status)
    },
  )
})

describe('an error of an upstream', () => {
  const error = (fields: object): Buffer => Buffer.from(JSON.stringify({ error: fields }))

  test('a Gemini error for an invalid API key is recognized by its reason, though its status is 400', () => {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }]
    const bytes = error({ code: 400, message: 'API key not valid.', status: 'INVALID_ARGUMENT', details })
    expect(readGeminiError(bytes)).toEqual({
      message: 'API key not valid.',
      type: 'INVALID_ARGUMENT',
      code: 'API_KEY_INVALID',
      status: 400,
      retryAfter: undefined,
    })
  })

  test('a Gemini error that comes in an array, as for a requested stream, is read', () => {
    const bytes = Buffer.from(
      JSON.stringify([{ error: { code: 503, message: 'Full.', status: 'UNAVAILABLE' } }]),
    )
    expect(readGeminiError(bytes)).toMatchObject({ message: 'Full.', type: 'UNAVAILABLE', status: 503 })
  })

  test.each([
    ['34s', 34],
    ['0.5s', 1],
    ['34', undefined],
    [-1, undefined],
    ['9999999999999s', undefined],
  ])('the time to retry is read from a Gemini error: %j', (retryDelay, seconds) => {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay }]
    const { retryAfter } = readGeminiError(error({ code: 429, status: 'RESOURCE_EXHAUSTED', details }))
    expect(retryAfter).toBe(seconds)
  })

  test.each(['', '<html>', '[]', 'null', '{"error":"text"}', '{"error":{"code":"x","details":[1,null]}}'])(
    'a Gemini error in an unknown format is read without a status and a retry time: %s',
    (text) => {
      expect(readGeminiError(Buffer.from(text))).toMatchObject({ status: undefined, retryAfter: undefined })
    },
  )
})
