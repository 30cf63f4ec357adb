import { describe, expect, test } from 'vitest'
import { messagesErrorBody, messagesErrorFrame, forwardableError } from './errors.ts'

describe("the gateway's own errors", () => {
  test("the gateway's errors are in the envelope of messages, with a code where it helps a program", () => {
    const error = { type: 'gateway_error', message: 'no channel (request id: 7)' }
    const body = messagesErrorBody({ ...error, code: 'model_not_found', requestId: '7' })
    expect(JSON.parse(body.toString())).toEqual({
      type: 'error',
      error: { ...error, code: 'model_not_found' },
      request_id: '7',
    })
    expect(messagesErrorBody({ type: 'gateway_error', message: 'm', requestId: 'r' }).toString()).toBe(
      '{"type":"error","error":{"type":"gateway_error","message":"m"},"request_id":"r"}',
    )
  })

  test('an error of the gateway in the middle of a messages stream is sent as an error event', () => {
    expect(
      messagesErrorFrame({ type: 'api_error', code: 'upstream_error', message: 'a\n"b"' }).toString(),
    ).toBe(
      'event: error\ndata: {"type":"error","error":{"type":"gateway_error","message":"a\\n\\"b\\"","code":"upstream_error"}}\n\n',
    )
  })
})

describe("an upstream's errors", () => {
  const hide = (text: string): string => text.replaceAll('sk-secret', '***')
  const envelope =
    '{ "error": {"message":"bad thing", "type": "invalid_request_error"}, "request_id": "req_1", "type": "error" }'

  test('an upstream error in the envelope of messages is forwarded byte for byte', () => {
    const bytes = Buffer.from(envelope)
    expect(forwardableError(bytes, hide)).toBe(bytes)
  })

  test('an upstream error of messages that contains a key is forwarded without the key, and with the request id', () => {
    const bytes = Buffer.from(
      envelope.replace('bad thing', 'key sk-secret, "sk-secret"'.replaceAll('"', '\\"')),
    )
    expect(JSON.parse(forwardableError(bytes, hide)?.toString() ?? '')).toEqual({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'key ***, "***"' },
      request_id: 'req_1',
    })
  })

  test.each([
    '',
    '<html>',
    '[]',
    '{}',
    '{"error":{"type":"t","message":"m"}}',
    '{"type":"error","error":"m"}',
    '{"type":"error","error":{"type":"t"}}',
  ])(
    'an upstream error whose body is not an error envelope of messages is not forwarded as it is: %s',
    (text) => {
      expect(forwardableError(Buffer.from(text), hide)).toBeUndefined()
    },
  )

  test('an upstream error in another envelope is sent in the envelope of messages', () => {
    expect(
      JSON.parse(messagesErrorBody({ type: 'rate_limit_error', message: 'slow', requestId: 'r' }).toString()),
    ).toEqual({
      type: 'error',
      error: { type: 'rate_limit_error', message: 'slow' },
      request_id: 'r',
    })
  })
})
