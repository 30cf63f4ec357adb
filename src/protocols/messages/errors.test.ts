import { describe, expect, test } from 'vitest'
import { messagesErrorBody, messagesErrorFrame, passedOnBody, passedOnError } from './errors.ts'

describe("the gateway's own errors", () => {
  test('are in its envelope, without an outer type', () => {
    const body = messagesErrorBody({ message: 'no channel (request id: 7)', code: 'model_not_found' })
    expect(JSON.parse(body.toString())).toEqual({
      error: { type: 'gateway_error', message: 'no channel (request id: 7)', code: 'model_not_found' },
    })
    expect(messagesErrorBody({ message: 'm' }).toString()).toBe(
      '{"error":{"type":"gateway_error","message":"m"}}',
    )
  })

  test('are an error event in the middle of a stream', () => {
    expect(messagesErrorFrame({ type: 'api_error', message: 'a\n"b"' }).toString()).toBe(
      'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"a\\n\\"b\\""}}\n\n',
    )
  })
})

describe("an upstream's errors", () => {
  const hide = (text: string): string => text.replaceAll('sk-secret', '***')
  const envelope =
    '{ "error": {"message":"bad thing", "type": "invalid_request_error"}, "request_id": "req_1", "type": "error" }'

  test('pass byte for byte', () => {
    const bytes = Buffer.from(envelope)
    expect(passedOnError(bytes, hide)).toBe(bytes)
  })

  test('pass redacted where they must be, with the request id', () => {
    const bytes = Buffer.from(
      envelope.replace('bad thing', 'key sk-secret, "sk-secret"'.replaceAll('"', '\\"')),
    )
    expect(JSON.parse(passedOnError(bytes, hide)?.toString() ?? '')).toEqual({
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
  ])('%s is no envelope', (text) => {
    expect(passedOnError(Buffer.from(text), hide)).toBeUndefined()
  })

  test('that came in another envelope get this one', () => {
    expect(
      JSON.parse(passedOnBody({ type: 'rate_limit_error', message: 'slow', requestId: 'r' }).toString()),
    ).toEqual({
      type: 'error',
      error: { type: 'rate_limit_error', message: 'slow' },
      request_id: 'r',
    })
  })
})
