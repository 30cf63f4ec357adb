import { expect, test } from 'vitest'
import { canonicalQuery, encodeSegment, type SignableRequest, signatureHeaders } from './signature-v4.ts'

const KEY = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
const NOW = new Date('2026-01-01T00:00:00Z')
const SCOPE = { service: 'bedrock', region: 'us-east-1' }

function headersFor(path: string, sessionToken?: string): string[] {
  const request = {
    method: 'POST',
    host: 'bedrock-runtime.us-east-1.amazonaws.com',
    path,
    headers: { 'content-type': 'application/json' },
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

const NOTHING = Buffer.alloc(0)

function authorizationOf(
  request: Partial<SignableRequest>,
  key: typeof KEY,
  service: string,
  time: string,
): string | undefined {
  const whole = { method: 'GET', host: 'example.amazonaws.com', path: '/', body: NOTHING, ...request }
  return signatureHeaders(whole, key, { service, region: 'us-east-1' }, new Date(time)).at(-1)
}

// From AWS's test suite for Signature Version 4: get-vanilla, get-vanilla-query-order-key-case, post-vanilla
// and post-x-www-form-urlencoded.
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
test.each<[string, Partial<SignableRequest>, string, string]>([
  ['a GET', {}, 'host;x-amz-date', '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
  [
    'a query in another order',
    { query: canonicalQuery({ Param2: 'value2', Param1: 'value1' }) },
    'host;x-amz-date',
    'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  ],
  [
    'a POST without a body',
    { method: 'POST' },
    'host;x-amz-date',
    '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
  ],
  [
    'a POST with a form',
    { method: 'POST', headers: FORM, body: Buffer.from('Param1=value1') },
    'content-type;host;x-amz-date',
    'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
  ],
])("AWS's example of %s has the published signature", (_, request, signed, signature) => {
  expect(authorizationOf(request, KEY, 'service', '2015-08-30T12:36:00Z')).toBe(
    'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, ' +
      `SignedHeaders=${signed}, Signature=${signature}`,
  )
})

// From the examples in the documentation of Amazon S3, "Signature Calculations for the Authorization Header".
const S3_KEY = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
}
const PUT = {
  method: 'PUT',
  path: `/${encodeSegment('test$file.text')}`,
  headers: { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
  body: Buffer.from('Welcome to Amazon S3.'),
}
test.each<[string, Partial<SignableRequest>, string, string]>([
  [
    'a part of an object',
    { path: '/test.txt', headers: { range: 'bytes=0-9' } },
    'host;range;x-amz-content-sha256;x-amz-date',
    'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  ],
  [
    'a new object',
    PUT,
    'date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class',
    '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  ],
  [
    'the life cycle of a bucket',
    { query: canonicalQuery({ lifecycle: '' }) },
    'host;x-amz-content-sha256;x-amz-date',
    'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  ],
  [
    'a list of objects',
    { query: canonicalQuery({ prefix: 'J', 'max-keys': '2' }) },
    'host;x-amz-content-sha256;x-amz-date',
    '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  ],
])(
  "Amazon's example of a request for %s in S3 has the published signature",
  (_, request, signed, signature) => {
    const host = 'examplebucket.s3.amazonaws.com'
    expect(authorizationOf({ host, ...request }, S3_KEY, 's3', '2013-05-24T00:00:00Z')).toBe(
      'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, ' +
        `SignedHeaders=${signed}, Signature=${signature}`,
    )
  },
)

test('a signed query is in the order of its percent-encoded names, with spaces and slashes encoded', () => {
  expect(canonicalQuery({ prefix: 'a b/c+', 'list-type': '2' })).toBe('list-type=2&prefix=a%20b%2Fc%2B')
})
