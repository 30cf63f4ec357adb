import { expect, test } from 'vitest'
import { encodeSegment, signatureHeaders } from './signature-v4.ts'

const KEY = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
const NOW = new Date('2026-01-01T00:00:00Z')
const SCOPE = { service: 'bedrock', region: 'us-east-1' }

function headersFor(path: string, sessionToken?: string): string[] {
  const request = {
    method: 'POST',
    host: 'bedrock-runtime.us-east-1.amazonaws.com',
    path,
    contentType: 'application/json',
    body: Buffer.from('{"anthropic_version":"bedrock-2023-05-31","max_tokens":1,"messages":[]}'),
  }
  return signatureHeaders(request, { ...KEY, ...(sessionToken && { sessionToken }) }, SCOPE, NOW)
}

// Test vectors whose signatures were computed by another implementation of the algorithm.
test.each([
  [
    '/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke',
    'ff7e8ee58c4f45a945185b4dbcc925f850f412728b5893e699e6cc73e70e48ce',
  ],
  [
    '/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/invoke',
    'da16a263c988f6a57a9b950fbc6eefa8029511b49ac23156718f88453fe940d3',
  ],
])('the path %s of an AWS request is signed as the AWS service computes it', (path, signature) => {
  expect(headersFor(path)).toEqual([
    'x-amz-date',
    '20260101T000000Z',
    'authorization',
    'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/us-east-1/bedrock/aws4_request, ' +
      `SignedHeaders=content-type;host;x-amz-date, Signature=${signature}`,
  ])
})

test('the session token of a temporary AWS key is sent and included in the signature', () => {
  const headers = headersFor('/model/m/invoke', 'a-session')
  expect(headers.slice(0, 4)).toEqual(['x-amz-date', '20260101T000000Z', 'x-amz-security-token', 'a-session'])
  expect(headers.at(-1)).toContain('SignedHeaders=content-type;host;x-amz-date;x-amz-security-token,')
})

test('a path segment in an AWS signature has all characters percent-encoded except the unreserved ones', () => {
  expect(encodeSegment("arn:aws:bedrock/a b!'()*~-_.")).toBe('arn%3Aaws%3Abedrock%2Fa%20b%21%27%28%29%2A~-_.')
})
