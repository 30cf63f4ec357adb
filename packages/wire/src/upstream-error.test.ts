import { describe, expect, test } from 'vitest'
import { readUpstreamError, statusOfError } from './upstream-error.ts'

describe('parsing an upstream error', () => {
  const none = { message: undefined, type: undefined, code: undefined }

  test.each([
    ['{"error":{"message":"m","type":"t","param":null,"code":"c"}}', { message: 'm', type: 't', code: 'c' }],
    ['{"error":{"message":"m","type":"t","code":null}}', { message: 'm', type: 't', code: undefined }],
    [
      '{"error":{"code":"RateLimitReached","message":"m","details":"m"}}',
      { message: 'm', type: undefined, code: 'RateLimitReached' },
    ],
    ['{"error":{"message":"m","code":401}}', { message: 'm', type: undefined, code: undefined }],
    ['{"error":{"message":"m","code":1301}}', { message: 'm', type: undefined, code: '1301' }],
    ['{"error":"m"}', { ...none, message: 'm' }],
    ['{"error":"t","message":"m"}', { ...none, message: 'm' }],
    ['[{"error":{"code":400,"message":"m","status":"S"}}]', { ...none, message: 'm' }],
    ['{"object":"error","message":"m","type":"t","code":40001}', { message: 'm', type: 't', code: '40001' }],
    [
      '{"type":"error","error":{"type":"t","message":"m"},"request_id":"r"}',
      { message: 'm', type: 't', code: undefined },
    ],
    ['{"detail":"m"}', { ...none, message: 'm' }],
    ['{"detail":[{"loc":["body"],"msg":"m","type":"missing"}]}', { ...none, message: 'm' }],
    ['{"errors":[{"message":"m"}]}', { ...none, message: 'm' }],
    ['"m"', { ...none, message: 'm' }],
    ['upstream connect error', { ...none, message: 'upstream connect error' }],
  ])('an upstream error is parsed: %s', (body, expected) => {
    expect(readUpstreamError(Buffer.from(body))).toEqual(expected)
  })

  test.each([
    '',
    '  ',
    '{}',
    '[]',
    'null',
    '1',
    '<html><body>502 Bad Gateway</body></html>',
    ' <!DOCTYPE html>',
    '{"error":',
    '{"error":null}',
    '{"error":{"message":5}}',
    '{"error":[]}',
  ])('a body without an error is recognized as such: %s', (body) => {
    expect(readUpstreamError(Buffer.from(body))).toEqual(none)
  })

  test('the message of an upstream error is read up to 64 KiB, and invalid types and codes are ignored', () => {
    const { message } = readUpstreamError(
      Buffer.from(JSON.stringify({ error: { message: 'x'.repeat(50_000) } })),
    )
    expect(message).toHaveLength(50_000)
    expect(readUpstreamError(Buffer.from('x'.repeat(200_000))).message).toHaveLength(65_536)
    expect(readUpstreamError(Buffer.from('{"error":{"message":"m","type":"a b","code":"\\u0000"}}'))).toEqual(
      { ...none, message: 'm' },
    )
  })
})

test.each([
  ['{"error":{"message":"x","code":429}}', 429],
  ['{"error":{"message":"x","code":"503","type":"invalid_request_error"}}', 503],
  ['{"error":{"message":"x","status":400}}', 400],
  ['{"object":"error","message":"x","code":404}', 404],
  ['{"error":{"type":"overloaded_error"}}', 529],
  ['{"type":"error","error":{"type":"rate_limit_error"}}', 429],
  ['{"error":{"type":null,"code":"context_length_exceeded"}}', 400],
  ['{"error":[{"type":"authentication_error"}]}', 401],
  ['{"error":{"type":"constructor","code":"200"}}', 500],
  ['{"error":"x"}', 500],
  ['busy', 500],
])('an error in a stream has the status of its number or its name: %s', (data, status) => {
  expect(statusOfError(data)).toBe(status)
})
